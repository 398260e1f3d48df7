/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/model/restart.pml - clients come back to a new daemon with their lives and links, in any
 * order, while the daemon dies again, one of them dies, and its next life asks for the address.
 * Clients 0 and 1 have a link with each other, made under an earlier daemon; client 2 is the
 * next life of 1. One that waits too long for an answer closes its connection and makes
 * another: what it said on the first is read all the same.
 *
 *   1 an address has one owner, and that is the one who lives (asserts in handle(), at the end)
 *   2 nobody is told that a living peer, which keeps its end, is gone (assert in lose())
 *   3 no link to a dead life stays, at a client or at the daemon (asserts at the end)
 *   4 everybody alive is registered in the end, and the daemon knows exactly the links that
 *     there are, with no claim of one end alone left over (asserts at the end)
 */
#define OFF     0
#define WAIT    1 /* REGISTER sent */
#define ON      2
#define REFUSED 3

#define CLIENTS 3
#define PATH(c) ((c) == 0 -> 0 : 1)
#define NOBODY  9

mtype = { REGISTER, RELINK, LINK_DOWN, HANGUP, REGISTERED, IN_USE, REMOVED };

chan up[CLIENTS] = [6] of { mtype, byte };   /* to the daemon: kind, connection */
chan down[CLIENTS] = [6] of { mtype, byte }; /* to the client: kind, connection or life */

bool alive[CLIENTS];
bool ends[2]; /* of the link, at 0 and 1 */
byte phase[CLIENTS];
byte conn[CLIENTS];   /* number of its connection */
byte hung[CLIENTS];   /* its connections up to this one are closed */
byte unread[CLIENTS]; /* its connection whose REGISTER the daemon has not read; 0: none */

/* The daemon. */
bool running;
byte owner[2]; /* of each address: a client */
byte owner_conn[2];
bool claim[2]; /* one end has told of the link */
bool link;

byte deaths;
byte restarts;
byte patience;
bool starts; /* the next life of 1 is to come */

#define OTHER (1 - me)

/* Its end is closed because the other is said to be gone: that must be so. */
inline lose()
{
    assert(!alive[OTHER] || !ends[OTHER]);
    ends[me] = false;
    if
    :: phase[me] == ON && running -> up[me]!LINK_DOWN, conn[me]
    :: else
    fi
}

inline hang_up(c)
{
    if
    :: running && hung[c] < conn[c] -> up[c]!HANGUP, conn[c]
    :: else
    fi;
    hung[c] = conn[c]
}

proctype client(byte me)
{
    byte n;
    do
    :: atomic { alive[me] && phase[me] == OFF && running && len(up[me]) < 4 && conn[me] < 6 ->
            conn[me]++; phase[me] = WAIT; unread[me] = conn[me]; up[me]!REGISTER, conn[me] }
    /* It looks into its socket before it gives up: an answer that is there counts. */
    :: atomic { alive[me] && phase[me] == WAIT && unread[me] == conn[me] && patience > 0 &&
                len(up[me]) < 4 -> patience--; hang_up(me); phase[me] = OFF }
    :: atomic { alive[me] && down[me]?[REGISTERED, _] && len(up[me]) < 4 -> down[me]?REGISTERED, n;
            if
            :: n == conn[me] && phase[me] == WAIT -> phase[me] = ON;
                if
                :: me < 2 && ends[me] -> up[me]!RELINK, n
                :: else
                fi
            :: else
            fi }
    :: atomic { alive[me] && down[me]?[IN_USE, _] -> down[me]?IN_USE, n;
            if
            :: n == conn[me] && phase[me] == WAIT -> phase[me] = REFUSED
            :: else
            fi }
    /* Tries again later: as often as it takes for the news of the other's death to arrive. */
    :: atomic { alive[me] && phase[me] == REFUSED && len(up[me]) < 4 && empty(up[1]) ->
            hang_up(me); phase[me] = OFF }
    :: atomic { alive[me] && me < 2 && down[me]?[LINK_DOWN, _] && len(up[me]) < 4 ->
            down[me]?LINK_DOWN, n;
            if
            :: ends[me] -> lose()
            :: else
            fi }
    :: atomic { alive[me] && down[me]?[REMOVED, _] && len(up[me]) < 4 -> down[me]?REMOVED, n;
            if
            :: me < 2 && n == OTHER && ends[me] -> lose()
            :: else
            fi }
    /* The bell of a dead peer. */
    :: atomic { me < 2 && alive[me] && ends[me] && !alive[OTHER] && len(up[me]) < 4 -> lose() }
    :: atomic { alive[me] && deaths > 0 && len(up[me]) < 5 -> deaths--; hang_up(me);
            alive[me] = false; phase[me] = OFF;
            if
            :: me < 2 -> ends[me] = false
            :: else
            fi }
    :: atomic { me == 2 && starts && !alive[1] -> starts = false; alive[me] = true }
    :: timeout -> break
    od
}

inline tell(c, what, n)
{
    if
    :: alive[c] && phase[c] != OFF && hung[c] < conn[c] -> down[c]!what, n
    :: else
    fi
}

/* It is dead for the daemon: its link, its claim, its name. */
inline remove(c)
{
    owner[PATH(c)] = NOBODY;
    if
    :: c < 2 && link -> link = false; tell((1 - c), LINK_DOWN, 0)
    :: c < 2 && !link -> claim[c] = false
    :: else
    fi;
    if
    :: c != 0 && owner[0] == 0 -> tell(0, REMOVED, c)
    :: c == 0 && owner[1] != NOBODY -> tell(owner[1], REMOVED, 0)
    :: else
    fi
}

inline handle(c)
{
    if
    :: up[c]?REGISTER, n ->
        if
        :: unread[c] == n -> unread[c] = 0
        :: else
        fi;
        if
        :: hung[c] >= n -> skip /* it has closed this connection: its death must not be told */
        :: else ->
            /* Whoever holds the address is asked for, the news of its end may be under way. */
            if
            :: owner[PATH(c)] != NOBODY && hung[owner[PATH(c)]] >= owner_conn[PATH(c)] ->
                h = owner[PATH(c)];
                remove(h)
            :: else
            fi;
            if
            :: owner[PATH(c)] != NOBODY -> tell(c, IN_USE, n)
            :: else ->
                assert(owner[PATH(c)] == NOBODY);
                owner[PATH(c)] = c;
                owner_conn[PATH(c)] = n;
                tell(c, REGISTERED, n)
            fi
        fi
    :: up[c]?RELINK, n ->
        if
        :: owner[PATH(c)] != c || link -> skip
        :: else ->
            if
            :: claim[1 - c] -> claim[1 - c] = false; link = true
            :: else -> claim[c] = true
            fi
        fi
    :: up[c]?LINK_DOWN, n ->
        if
        :: link -> link = false; tell((1 - c), LINK_DOWN, 0)
        :: else -> claim[c] = false
        fi
    :: up[c]?HANGUP, n ->
        if
        :: owner[PATH(c)] == c && owner_conn[PATH(c)] == n -> remove(c)
        :: else
        fi
    fi
}

inline forget(c)
{
    do
    :: len(up[c]) > 0 -> up[c]?_, _
    :: len(down[c]) > 0 -> down[c]?_, _
    :: len(up[c]) == 0 && len(down[c]) == 0 -> break
    od;
    if
    :: phase[c] != OFF -> phase[c] = OFF
    :: else
    fi;
    hung[c] = conn[c];
    unread[c] = 0
}

#define ROOM (len(down[0]) < 4 && len(down[1]) < 4 && len(down[2]) < 4)

proctype daemon()
{
    byte n;
    byte h;
    do
    :: atomic { running && nempty(up[0]) && ROOM -> handle(0) }
    :: atomic { running && nempty(up[1]) && ROOM -> handle(1) }
    :: atomic { running && nempty(up[2]) && ROOM -> handle(2) }
    :: atomic { running && restarts > 0 -> restarts--; running = false;
            owner[0] = NOBODY; owner[1] = NOBODY;
            claim[0] = false; claim[1] = false; link = false;
            forget(0); forget(1); forget(2); n = 0; h = 0 }
    :: atomic { !running -> running = true }
    :: timeout ->
        assert(empty(up[0]) && empty(up[1]) && empty(up[2]));
        assert(!alive[0] || phase[0] == ON || conn[0] >= 6);
        assert(!alive[1] || phase[1] == ON || conn[1] >= 6);
        assert(!alive[2] || phase[2] == ON || conn[2] >= 6);
        assert(owner[0] == (alive[0] && phase[0] == ON -> 0 : NOBODY));
        assert(owner[1] == (alive[1] && phase[1] == ON -> 1 :
                            (alive[2] && phase[2] == ON -> 2 : NOBODY)));
        assert(ends[0] == ends[1]);
        assert(!ends[0] || (alive[0] && alive[1]));
        assert(link == (ends[0] && phase[0] == ON && phase[1] == ON));
        assert(conn[0] >= 6 || conn[1] >= 6 || (!claim[0] && !claim[1]));
        break
    od
}

init {
    atomic {
        alive[0] = true;
        alive[1] = true;
        ends[0] = true;
        ends[1] = true;
        owner[0] = NOBODY;
        owner[1] = NOBODY;
        starts = true;
        select (deaths : 0 .. BUDGET);
        select (restarts : 0 .. BUDGET);
        select (patience : 0 .. BUDGET);
        run client(0);
        run client(1);
        run client(2);
        run daemon()
    }
}
