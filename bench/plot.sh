#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/plot.sh FOLDER: a PNG for each table that the driver left in FOLDER.
set -eu
cd "$1"
command -v gnuplot >/dev/null || { echo "gnuplot is not installed: no plots"; exit 0; }

# draw DATA PICTURE TITLE X Y COLUMN [COMMAND]
draw() {
    gnuplot <<PLOT
set terminal pngcairo size 1100,700 font "sans,10"
set output "$2.png"
set title "$3"
set xlabel "$4"
set ylabel "$5"
set logscale xy
set grid
set key outside right noenhanced
set xtics noenhanced
stats "$1" using 1 nooutput
set key autotitle columnheader
${7:-}
plot for [i=0:STATS_blocks-2] "$1" index i using 1:$6 with linespoints lw 2 pt (i % 13 + 1) lc rgb hsv2rgb(i*0.381966 - floor(i*0.381966), 0.9, 0.4 + 0.2 * (i % 3))
PLOT
}

# percentiles DATA PICTURE TITLE SIZE: p50 to p99.9 of one size, a line each.
percentiles() {
    awk -v size="$4" '
        /^"/ { name = $0 }
        $1 == size && $5 > 0 {
            printf "%s\n50 %s\n90 %s\n99 %s\n99.9 %s\n\n\n", name, $5, $6, $7, $8
        }' "$1" >"$2.tmp"
    if [ -s "$2.tmp" ]; then
        draw "$2.tmp" "$2" "$3" "percentile" "ns" 2 \
            'unset logscale x; set xrange [0.5:4.5]; set xtics ("p50" 50, "p90" 90, "p99" 99, "p99.9" 99.9); set xrange [45:101]'
    fi
    rm -f "$2.tmp"
}

# some DATA PICTURE TITLE X Y COLUMN NAME...: only the lines of these contenders.
some() {
    data=$1 picture=$2 title=$3 x=$4 y=$5 column=$6
    shift 6
    awk -v names=" $* " '
        /^"/ { name = $0; gsub(/"/, "", name); wanted = index(names, " " name " ") > 0 }
        wanted' "$data" >"$picture.tmp"
    [ ! -s "$picture.tmp" ] || draw "$picture.tmp" "$picture" "$title" "$x" "$y" "$column"
    rm -f "$picture.tmp"
}

# xs DATA: how many different x there are.
xs() { awk '/^[0-9]/ { seen[$1] } END { print length(seen) }' "$1"; }

for data in *.dat; do
    [ -f "$data" ] || continue
    name=${data%.dat}
    case $name in
    round-trip* | sparse* | same-core*)
        [ "$(xs "$data")" -lt 2 ] || draw "$data" "$name" "Round trip ($name), median" "payload, bytes" "ns" 2
        percentiles "$data" "$name-percentiles" "Round trip of 64 bytes ($name), percentiles" 64
        [ "$(xs "$data")" -lt 2 ] ||
            some "$data" "$name-by-reference" "Round trip ($name): copied, built in place, by reference" \
                "payload, bytes" "ns" 2 limit-copy ringbus ringbus-claim ringbus-ref iceoryx
        ;;
    *)
        [ "$(xs "$data")" -ge 2 ] || continue
        ;;
    esac
    case $name in
    one-way*)
        draw "$data" "$name" "One way ($name), median" "payload, bytes" "million messages a second" 2
        some "$data" "$name-by-reference" "One way ($name): copied, built in place, by reference" \
            "payload, bytes" "million messages a second" 2 bare-byte-ring ringbus ringbus-claim ringbus-ref iceoryx
        ;;
    broadcast-large*) draw "$data" "$name" "A publish of 64 KiB" "readers" "ns" 2 ;;
    broadcast*) draw "$data" "$name" "A publish of 1 KiB" "readers" "ns" 2 ;;
    idle-links*) draw "$data" "$name" "A look, and a round trip, among idle links" "links" "ns" 2 ;;
    fan*) draw "$data" "$name" "Many to one, one to many" "links" "million messages a second" 2 ;;
    esac
done
