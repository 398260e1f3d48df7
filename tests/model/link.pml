/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/model/link.pml - the life of a link between two ends that both live: all
 * interleavings of opening, refusing, untargeting and closing over two lanes. Time is
 * modelled as a choice: a lapse or a silence may happen whenever the peer has nothing
 * under way that would prevent it, but never because the peer has closed: that it must
 * be told. The rules are those of bus/link.c; tests/sim/ runs that code.
 *
 *   1 nothing is sent after the end (assert in SEND)
 *   2 nobody waits for an acknowledgement that never comes, both are open or both closed
 *     (assert in the last state)
 *   3 once up, a link is usable until it is closed (assert in NOTE_UP)
 *   4 an end that no longer cares gets no use back by a late acknowledgement
 */
#define IDLE 0
#define WAIT 1
#define UP   2

mtype = { READY, ACK, NACK, BYE, PING };

chan lane[2] = [6] of { mtype }; /* lane[i] is what end i reads */

byte mine[2];
byte theirs[2];
bool known[2]; /* the peer has opened its use once: a PING may bring it back */
bool closed[2];
bool up[2];
bool wants[2]; /* the application's word, to compare with */
byte budget[2]; /* things that the application still does */
byte pings[2];

#define OTHER        (1 - me)
#define SEND(m)      assert(!closed[me]); lane[OTHER]!m
#define USABLE(i)    (!closed[i] && (mine[i] == UP || theirs[i] == UP))
#define NOTE_UP      if :: USABLE(me) -> up[me] = true :: else -> assert(closed[me] || !up[me]) fi
#define FINISH       closed[me] = true; mine[me] = IDLE; theirs[me] = IDLE
#define QUIET        (empty(lane[0]) && empty(lane[1]))

inline on_ready()
{
    if
    :: SEND(ACK); theirs[me] = UP; known[me] = true
    :: budget[me] > 0 -> /* refused: denied, out of resources, closing */
        budget[me]--;
        SEND(NACK);
        known[me] = false;
        if
        :: mine[me] == IDLE || (theirs[me] == UP && mine[me] == WAIT) ->
            if
            :: theirs[me] == UP -> SEND(BYE)
            :: else
            fi;
            FINISH
        :: else -> theirs[me] = IDLE
        fi
    fi
}

inline on_nack()
{
    if
    :: mine[me] == IDLE -> skip
    :: mine[me] != IDLE && theirs[me] == UP -> mine[me] = IDLE
    :: mine[me] != IDLE && theirs[me] != UP -> SEND(BYE); FINISH
    fi
}

inline untarget()
{
    if
    :: theirs[me] == UP -> mine[me] = IDLE
    :: else -> SEND(BYE); FINISH
    fi
}

proctype end(byte me)
{
    do
    :: closed[me] && nempty(lane[me]) -> atomic { if :: lane[me]?_ fi }
    :: !closed[me] && nempty(lane[me]) ->
        atomic {
            if
            :: lane[me]?READY -> on_ready()
            :: lane[me]?ACK ->
                if
                :: mine[me] == WAIT -> mine[me] = UP
                :: else
                fi
            :: lane[me]?NACK -> on_nack()
            :: lane[me]?BYE -> FINISH
            :: lane[me]?PING ->
                if
                :: known[me] -> theirs[me] = UP
                :: else
                fi
            fi;
            NOTE_UP;
            assert(mine[me] == IDLE || wants[me])
        }
    :: atomic { !closed[me] && budget[me] > 0 && mine[me] == IDLE && len(lane[OTHER]) < 4 ->
            budget[me]--; wants[me] = true; mine[me] = WAIT; SEND(READY) }
    :: atomic { !closed[me] && budget[me] > 0 && mine[me] == UP && len(lane[OTHER]) < 4 ->
            budget[me]--; SEND(READY) } /* other terms */
    :: atomic { !closed[me] && budget[me] > 0 && mine[me] != IDLE && len(lane[OTHER]) < 4 ->
            budget[me]--; wants[me] = false; untarget(); NOTE_UP }
    :: atomic { !closed[me] && budget[me] > 0 && len(lane[OTHER]) < 4 ->
            budget[me]--; SEND(BYE); FINISH }
    /* Time: a use that sends no PING lapses beside mine, or ends a link that only it kept. */
    :: atomic { !closed[me] && !closed[OTHER] && QUIET && theirs[me] == UP && mine[OTHER] != UP ->
            if
            :: mine[me] == UP -> theirs[me] = IDLE
            :: mine[me] != UP && mine[OTHER] == IDLE -> SEND(BYE); FINISH
            fi }
    /* It was only stopped for a while: its next PING brings the use back. */
    :: atomic { !closed[me] && budget[me] > 0 && theirs[me] == UP && mine[me] == UP ->
            budget[me]--; theirs[me] = IDLE }
    :: atomic { !closed[me] && !closed[OTHER] && QUIET && mine[me] == UP && theirs[OTHER] != UP &&
                pings[me] < 6 -> pings[me]++; SEND(PING) }
    /* An introduction that nobody opened. */
    :: atomic { !closed[me] && !closed[OTHER] && QUIET && mine[me] == IDLE && theirs[me] == IDLE &&
                mine[OTHER] == IDLE -> SEND(BYE); FINISH }
    :: timeout ->
        assert(QUIET);
        assert(closed[me] || mine[me] != WAIT);
        assert(closed[0] == closed[1]);
        assert(closed[me] || USABLE(me));
        /* What one end uses, the other knows of. */
        assert(closed[me] || mine[me] != UP || theirs[OTHER] == UP);
        break
    od
}

init {
    atomic {
        budget[0] = BUDGET;
        budget[1] = BUDGET;
        run end(0);
        run end(1)
    }
}
