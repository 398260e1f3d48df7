/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/model/resume.pml - a stream between two bridges that is cut, resumed over another way,
 * given up and ended, in all interleavings. Records go one way, from the opener to the acceptor.
 * The rules are those of bus/stream*.c, and tests/sim/stream runs that code. Time is a choice:
 * either side may give a held stream up at any moment, and anything on a way may come at any
 * moment, in its order, until its reader notices that the way is cut.
 *
 * A frame carries the number of its attempt: that stands for the handle, of which each attempt has
 * its own.
 *
 *   1 each record arrives once and in order, whatever is sent again (assert in take())
 *   2 what is acknowledged has arrived (assert in acknowledged())
 *   3 what has arrived when the opener ends is what it says may have been seen, or before that, and
 *     nothing behind it ever arrives (asserts in opener_ends() and take())
 *   4 an end in order that is answered: everything has arrived (assert in answered())
 *   5 in the end both have the stream, with everything arrived and acknowledged, or neither (assert
 *     in the last state): nobody waits for one who has forgotten him
 *
 * tests/model/mutate_resume.sh breaks a rule at each line that is marked M, and expects this to
 * fail.
 */
#define RECORDS  2
#define WAYS     2
#define ATTEMPTS (BUDGET + 3)

#define OPENING  0
#define OPEN     1
#define HELD     2
#define RESUMING 3
#define CLOSED   4 /* of the acceptor: there is no stream */

#define NEVER 9

mtype = { OPEN_NEW, OPEN_AGAIN, OPENED, FORGOTTEN, DATA, ACK, CLOSE, ANSWER, GONE };

/* Kind, attempt, and a number: expect or position; in OPEN_AGAIN the attempt that was OPENED first,
 * and then begin. */
chan to_acceptor[WAYS] = [3] of { mtype, byte, byte, byte };
chan to_opener[WAYS] = [3] of { mtype, byte, byte, byte };
bool cut[WAYS];      /* nothing more gets on it */
bool opener_up[WAYS]; /* as each side believes */
bool acceptor_up[WAYS];

byte cuts;
byte deaths;   /* of the acceptor's bridge */
byte gives_up; /* of either side */
byte leaves;   /* its endpoint ends the link, or it stays */

/* The opener. */
byte state = OPENING;
bool asked; /* OPENING: OPEN is under way */
byte attempt;
byte opened; /* the attempt that was OPENED first; 0: none */
byte way;
byte acked;
byte pos;
byte furthest;
bool left;
bool close_sent;

/* The acceptor. */
byte a_state = CLOSED;
byte a_attempt;
byte a_way;
byte a_expect;
byte a_told; /* last acknowledgement; NEVER: to be said again */

/* What really happened. */
byte arrived;
byte seen = NEVER; /* as the opener's end says */

inline send_to_acceptor(w, kind, n, x, y)
{
    if
    :: !cut[w] && acceptor_up[w] -> to_acceptor[w]!kind, n, x, y
    :: else
    fi
}

inline send_to_opener(w, kind, n, x, y)
{
    if
    :: !cut[w] && opener_up[w] -> to_opener[w]!kind, n, x, y
    :: else
    fi
}

#define ROOM(c) (len(c) < 3)

/* ---- the opener --------------------------------------------------------------------------- */

inline opener_ends(maybe)
{
    state = CLOSED;
    seen = maybe;
    assert(arrived <= seen) /* 3 */
}

inline send_open(w)
{
    attempt++;
    way = w;
    close_sent = false;
    if
    :: opened == 0 -> send_to_acceptor(w, OPEN_NEW, attempt, 0, 0)
    :: else -> send_to_acceptor(w, OPEN_AGAIN, attempt, opened, acked)
    fi
}

inline answered()
{
    assert(arrived == RECORDS); /* 4 */
    opener_ends(RECORDS)
}

inline opener_reads(w)
{
    to_opener[w]?kind, n, x, y;
    if
    :: kind == OPENED && state == CLOSED -> send_to_acceptor(w, GONE, n, 0, 0) /* M1 */
    :: kind == OPENED && state != CLOSED ->
        if
        :: n == attempt && w == way && ((state == OPENING && asked) || state == RESUMING) ->
            assert(acked <= x && x <= furthest);
            pos = x; /* M2 */
            opened = (opened == 0 -> n : opened);
            state = OPEN
        :: else
        fi
    :: kind == FORGOTTEN && n == attempt && state == RESUMING -> opener_ends(furthest) /* M3 */
    :: kind == ACK && n == attempt && w == way && state == OPEN ->
        assert(x <= arrived); /* 2 */
        assert(acked <= x && x <= pos);
        acked = x
    :: kind == ANSWER && n == attempt && w == way && state == OPEN -> answered()
    :: else
    fi;
    kind = 0; n = 0; x = 0; y = 0
}

inline opener_notices(w)
{
    opener_up[w] = false;
    do
    :: nempty(to_opener[w]) -> to_opener[w]?_, _, _, _
    :: empty(to_opener[w]) -> break
    od;
    if
    :: way == w && (state == OPEN || state == RESUMING) -> state = HELD
    :: way == w && state == OPENING -> asked = false
    :: else
    fi
}

proctype opener()
{
    mtype kind;
    byte n;
    byte x;
    byte y;
    byte w;
    do
    :: atomic { nempty(to_opener[0]) && opener_up[0] && ROOM(to_acceptor[0]) -> opener_reads(0) }
    :: atomic { nempty(to_opener[1]) && opener_up[1] && ROOM(to_acceptor[1]) -> opener_reads(1) }
    :: atomic { cut[0] && opener_up[0] -> opener_notices(0) }
    :: atomic { cut[1] && opener_up[1] -> opener_notices(1) }
    /* There is a way: OPEN, for the first time or again. */
    :: atomic { ((state == OPENING && !asked) || state == HELD) && attempt < ATTEMPTS &&
                (opener_up[0] || opener_up[1]) ->
            if
            :: opener_up[0] && ROOM(to_acceptor[0]) -> w = 0
            :: opener_up[1] && ROOM(to_acceptor[1]) -> w = 1
            fi;
            send_open(w);
            w = 0;
            if
            :: state == OPENING -> asked = true
            :: else -> state = RESUMING
            fi }
    :: atomic { state == OPEN && pos < RECORDS && ROOM(to_acceptor[way]) ->
            send_to_acceptor(way, DATA, attempt, pos, 0);
            pos++;
            furthest = (pos > furthest -> pos : furthest) }
    :: atomic { state == OPEN && leaves > 0 && !left -> left = true }
    :: atomic { state == OPEN && left && !close_sent && pos == RECORDS && ROOM(to_acceptor[way]) ->
            send_to_acceptor(way, CLOSE, attempt, pos, 0);
            close_sent = true }
    /* After unreachable_after; or at the end of all attempts that are modelled. */
    :: atomic { ((gives_up > 0 && (state == HELD || state == RESUMING)) ||
                 (attempt >= ATTEMPTS && (state == HELD || (state == OPENING && !asked)))) ->
            gives_up = (gives_up > 0 -> gives_up - 1 : 0);
            opener_ends(furthest) }
    :: timeout ->
        assert((state == CLOSED && a_state == CLOSED) ||
               (state == OPEN && a_state == OPEN && arrived == RECORDS && acked == RECORDS));
        break /* 5 */
    od
}

/* ---- the acceptor ------------------------------------------------------------------------- */

inline accept(w, n)
{
    a_attempt = n;
    a_way = w;
    a_state = OPEN;
    a_told = NEVER; /* M4: an acknowledgement may have been lost */
    send_to_opener(w, OPENED, n, a_expect, 0)
}

inline take(num)
{
    if
    :: num == a_expect ->
        assert(num == arrived); /* 1 */
        assert(seen == NEVER || num < seen); /* 3 */
        arrived++;
        a_expect++
    :: num < a_expect -> skip /* a duplicate */
    :: else -> assert(false) /* one is missing */
    fi
}

inline acceptor_reads(w)
{
    to_acceptor[w]?kind, n, x, y;
    if
    :: kind == OPEN_NEW && a_state == CLOSED -> a_expect = 0; accept(w, n)
    :: kind == OPEN_NEW && a_state != CLOSED && n > a_attempt -> accept(w, n) /* M5 */
    :: kind == OPEN_AGAIN && a_state == CLOSED -> send_to_opener(w, FORGOTTEN, n, 0, 0)
    :: kind == OPEN_AGAIN && a_state != CLOSED && n > a_attempt ->
        if
        :: x > a_attempt || y > a_expect -> /* M6: what it knows is not the stream that went on */
            a_state = CLOSED;
            send_to_opener(w, FORGOTTEN, n, 0, 0)
        :: else -> accept(w, n)
        fi
    :: kind == DATA && a_state == OPEN && n == a_attempt && w == a_way -> take(x)
    :: kind == CLOSE && a_state == OPEN && n == a_attempt && w == a_way ->
        assert(x == a_expect);
        send_to_opener(w, ANSWER, n, 0, 0);
        a_state = CLOSED
    :: kind == GONE && a_state == OPEN && n == a_attempt && w == a_way -> a_state = CLOSED
    :: else
    fi;
    kind = 0; n = 0; x = 0; y = 0
}

inline acceptor_notices(w)
{
    acceptor_up[w] = false;
    do
    :: nempty(to_acceptor[w]) -> to_acceptor[w]?_, _, _, _
    :: empty(to_acceptor[w]) -> break
    od;
    if
    :: a_way == w && a_state == OPEN -> a_state = HELD
    :: else
    fi
}

proctype acceptor()
{
    mtype kind;
    byte n;
    byte x;
    byte y;
    do
    :: atomic { nempty(to_acceptor[0]) && acceptor_up[0] && ROOM(to_opener[0]) ->
            acceptor_reads(0) }
    :: atomic { nempty(to_acceptor[1]) && acceptor_up[1] && ROOM(to_opener[1]) ->
            acceptor_reads(1) }
    :: atomic { cut[0] && acceptor_up[0] -> acceptor_notices(0) }
    :: atomic { cut[1] && acceptor_up[1] -> acceptor_notices(1) }
    :: atomic { a_state == OPEN && a_told != a_expect && ROOM(to_opener[a_way]) ->
            send_to_opener(a_way, ACK, a_attempt, a_expect, 0);
            a_told = a_expect }
    /* It gives up what is held for long. The last has nobody to wait for. */
    :: atomic { a_state == HELD && (gives_up > 0 || state == CLOSED || attempt >= ATTEMPTS) ->
            gives_up = (gives_up > 0 -> gives_up - 1 : 0);
            a_state = CLOSED }
    :: atomic { deaths > 0 ->
            deaths--;
            a_state = CLOSED;
            cut[0] = true; cut[1] = true;
            acceptor_notices(0);
            acceptor_notices(1) }
    :: timeout -> break
    od
}

/* ---- the ways ----------------------------------------------------------------------------- */

inline connect(w)
{
    cut[w] = false;
    opener_up[w] = true;
    acceptor_up[w] = true
}

proctype ways()
{
    do
    :: atomic { cuts > 0 && !cut[0] -> cuts--; cut[0] = true }
    :: atomic { cuts > 0 && !cut[1] -> cuts--; cut[1] = true }
    :: atomic { cut[0] && !opener_up[0] && !acceptor_up[0] -> connect(0) }
    :: atomic { cut[1] && !opener_up[1] && !acceptor_up[1] -> connect(1) }
    :: timeout -> break
    od
}

init {
    atomic {
        connect(0);
        connect(1);
        select (cuts : 0 .. BUDGET);
        select (deaths : 0 .. 1);
        select (gives_up : 0 .. 1);
        select (leaves : 0 .. 1);
        run opener();
        run acceptor();
        run ways()
    }
}
