/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/model/introduce.pml - how two endpoints that may both ask for a link get exactly one,
 * over the daemon, whoever dies at whatever moment. Control messages are queues between each
 * client and the daemon; a death is the end of a queue, which the daemon reads after what was
 * said before it. READY and what follows is tests/model/link.pml.
 *
 *   client                    daemon                     client
 *     INTRODUCE ---------------> one a pair ---- INTRODUCED -->
 *     <----------- LINKED ------ <------------------- ACCEPT
 *
 *   1 a pair has at most one link at the daemon, and at most one end at each client
 *     (asserts in from_client())
 *   2 ends that are linked to each other belong to one link (assert at the end)
 *   3 nobody waits for an answer that never comes, and nothing is half-made for ever: when
 *     nothing is under way, each living one that wants the link has it, or the other is dead,
 *     and the daemon knows exactly the links that there are (asserts at the end)
 *   4 an end whose peer is dead is closed (assert at the end)
 */
#define FREE    0
#define ASKED   1 /* INTRODUCE sent */
#define LINKED  2

#define LINKS 5 /* that the daemon makes at most */

mtype = { INTRODUCE, ACCEPT, REFUSE, DOWN, HANGUP, INTRODUCED, LINKED_OK, ERROR };

chan to_daemon[2] = [7] of { mtype, byte }; /* of each client: kind, link */
chan to_client[2] = [7] of { mtype, byte };
chan lane[2] = [4] of { byte }; /* DISCONNECT, or the bell of a dead peer: which link has ended */

bool alive[2];
bool wants[2];
byte phase[2]; /* of the end at each client */
byte end[2];   /* its link; 0: none that is known yet */
byte deaths;
byte untargets;
byte refusals;

/* The daemon: the link of the pair. 0: there is none. */
byte link;
byte requester;
bool linked;
byte next_link = 1;
bool gone[2]; /* the daemon knows that it is dead */

#define OTHER (1 - me)
#define ROOM  (len(to_daemon[me]) < 6)

inline close_end()
{
    lane[OTHER]!end[me];
    to_daemon[me]!DOWN, end[me];
    phase[me] = FREE;
    end[me] = 0
}

proctype client(byte me)
{
    byte id;
    do
    :: !alive[me] -> break
    /* A target without an end asks; one whose introduction is under way does not. */
    :: atomic { alive[me] && wants[me] && phase[me] == FREE && !gone[OTHER] && ROOM &&
            next_link < LINKS -> phase[me] = ASKED; end[me] = 0; to_daemon[me]!INTRODUCE, 0 }
    :: atomic { alive[me] && to_client[me]?[INTRODUCED, _] && ROOM -> to_client[me]?INTRODUCED, id;
            if
            :: phase[me] == LINKED -> to_daemon[me]!REFUSE, id /* in use */
            :: phase[me] != LINKED && refusals > 0 -> /* no memory, leaving, ... */
                refusals--;
                /* Ours gives way to the other's even then, or its answer would find it. */
                phase[me] = FREE;
                to_daemon[me]!REFUSE, id
            :: phase[me] != LINKED ->
                phase[me] = LINKED; end[me] = id; to_daemon[me]!ACCEPT, id
            fi }
    :: atomic { alive[me] && to_client[me]?[LINKED_OK, _] && ROOM -> to_client[me]?LINKED_OK, id;
            if
            :: phase[me] == ASKED -> phase[me] = LINKED; end[me] = id
            :: else -> to_daemon[me]!DOWN, id /* no longer wanted */
            fi }
    :: atomic { alive[me] && to_client[me]?[ERROR, _] -> to_client[me]?ERROR, _;
            /* By the serial of our request: one that gave way to the other's is not meant. */
            if
            :: phase[me] == ASKED -> phase[me] = FREE
            :: else
            fi }
    :: atomic { alive[me] && to_client[me]?[DOWN, _] -> to_client[me]?DOWN, id;
            if
            :: phase[me] == LINKED && end[me] == id -> phase[me] = FREE; end[me] = 0
            :: else
            fi }
    /* The application wants it no more: the end is closed, the other hears it in the lane. */
    :: atomic { alive[me] && wants[me] && untargets > 0 && ROOM -> untargets--; wants[me] = false;
            if
            :: phase[me] == LINKED && !wants[OTHER] -> close_end()
            :: phase[me] == ASKED -> phase[me] = FREE
            :: else
            fi }
    :: atomic { alive[me] && lane[me]?[_] && ROOM -> lane[me]?id;
            if
            :: phase[me] == LINKED && end[me] == id ->
                phase[me] = FREE; end[me] = 0; to_daemon[me]!DOWN, id
            :: else
            fi }
    :: atomic { alive[me] && deaths > 0 && ROOM -> deaths--; alive[me] = false;
            if
            :: phase[me] == LINKED -> lane[OTHER]!end[me]
            :: else
            fi;
            phase[me] = FREE; end[me] = 0; to_daemon[me]!HANGUP, 0 }
    :: timeout -> break
    od
}

inline say(who, what, id)
{
    if
    :: !gone[who] && alive[who] -> to_client[who]!what, id
    :: else
    fi
}

/* Ends the link; tells both but the one that said so. */
inline end_link(but)
{
    if
    :: link != 0 ->
        if
        :: but != 1 - requester -> say((1 - requester), DOWN, link)
        :: else
        fi;
        if
        :: but != requester && linked -> say(requester, DOWN, link)
        :: but != requester && !linked -> say(requester, ERROR, link)
        :: else
        fi;
        link = 0;
        linked = false
    :: else
    fi
}

inline from_client(me, other)
{
    if
    :: to_daemon[me]?INTRODUCE, _ ->
        if
        :: gone[other] || link != 0 -> say(me, ERROR, 0)
        :: else ->
            assert(link == 0);
            link = next_link; next_link++; requester = me; linked = false;
            say(other, INTRODUCED, link)
        fi
    :: to_daemon[me]?ACCEPT, id ->
        if
        :: link == id && !linked && requester == other -> linked = true; say(other, LINKED_OK, id)
        :: else -> say(me, DOWN, id)
        fi
    :: to_daemon[me]?REFUSE, id ->
        if
        :: link == id && !linked -> end_link(me)
        :: else
        fi
    :: to_daemon[me]?DOWN, id ->
        if
        :: link == id -> end_link(me)
        :: else
        fi
    :: to_daemon[me]?HANGUP, _ -> gone[me] = true; end_link(me)
    fi
}

#define SETTLED(me)                                                                                \
    (!alive[me] || (phase[me] != ASKED &&                                                          \
                    (phase[me] == LINKED || !wants[me] || !alive[1 - me] || next_link >= LINKS) && \
                    (phase[me] != LINKED || (alive[1 - me] && phase[1 - me] == LINKED &&           \
                                             end[0] == end[1] && link == end[me] && linked))))

proctype daemon()
{
    byte id;
    do
    :: atomic { nempty(to_daemon[0]) && nfull(to_client[0]) && nfull(to_client[1]) ->
            from_client(0, 1) }
    :: atomic { nempty(to_daemon[1]) && nfull(to_client[0]) && nfull(to_client[1]) ->
            from_client(1, 0) }
    :: timeout ->
        assert(empty(to_daemon[0]) && empty(to_daemon[1]));
        assert(SETTLED(0) && SETTLED(1));
        assert(link == 0 || linked);
        assert(link == 0 || (phase[0] == LINKED && phase[1] == LINKED));
        break
    od
}

init {
    atomic {
        alive[0] = true;
        alive[1] = true;
        if
        :: wants[0] = true
        :: wants[0] = true; wants[1] = true
        fi;
        /* What may happen must happen before the end: so much, or less, or nothing. */
        select (deaths : 0 .. BUDGET);
        select (untargets : 0 .. BUDGET);
        select (refusals : 0 .. BUDGET);
        run client(0);
        run client(1);
        run daemon()
    }
}
