#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/plot.sh FOLDER: a PNG for each table that the driver left in FOLDER.
set -eu
cd "$1"
command -v gnuplot >/dev/null || { echo "gnuplot is not installed: no plots"; exit 0; }

# xs DATA: how many different x there are.
xs() { awk '/^[0-9]/ { seen[$1] } END { print length(seen) }' "$1"; }

# lines DATA X:COLUMN: what gnuplot is to draw, a line each: limits dashed, ringbus thick.
lines() {
    awk -v data="$1" -v using="$2" '
        /^"/ {
            name = $0
            gsub(/"/, "", name)
            hue = n * 0.381966
            hue -= int(hue)
            width = name ~ /^ringbus/ ? 4 : 2
            dash = name ~ /^(limit|bare)-/ ? 2 : 1
            printf "%s\"%s\" index %d using %s with linespoints title \"%s\" lw %d dt %d pt %d lc rgb hsv2rgb(%f, 0.9, %f)",
                n ? ", " : "", data, n, using, name, width, dash, n % 13 + 1, hue, 0.45 + 0.2 * (n % 3)
            n++
        }' "$1"
}

# draw DATA PICTURE TITLE X Y COLUMN [COMMAND]
draw() {
    gnuplot <<PLOT
set terminal pngcairo size 1200,700 font "sans,10"
set output "$2.png"
set title "$3" noenhanced
set xlabel "$4"
set ylabel "$5"
set logscale xy
set format x "%.0s%c"
set format y "%.0s%c"
set grid
set key outside right noenhanced
set xtics noenhanced
${7:-}
plot $(lines "$1" "1:$6")
PLOT
}

# percentiles DATA PICTURE TITLE SIZE: p50 to p99.9 of one size, a line each.
percentiles() {
    awk -v size="$4" '
        /^"/ { name = $0 }
        $1 == size && $5 > 0 {
            printf "%s\n1 %s\n2 %s\n3 %s\n4 %s\n\n\n", name, $5, $6, $7, $8
        }' "$1" >"$2.tmp"
    if [ -s "$2.tmp" ]; then
        draw "$2.tmp" "$2" "$3" "percentile" "ns" 2 \
            'unset logscale x; set xtics ("p50" 1, "p90" 2, "p99" 3, "p99.9" 4); set xrange [0.8:4.2]'
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
    [ "$(xs "$picture.tmp")" -lt 2 ] || draw "$picture.tmp" "$picture" "$title" "$x" "$y" "$column"
    rm -f "$picture.tmp"
}

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
        draw "$data" "$name" "One way ($name), median" "payload, bytes" "messages a second" "(\$2*1e6)"
        some "$data" "$name-by-reference" "One way ($name): copied, built in place, by reference" \
            "payload, bytes" "messages a second" "(\$2*1e6)" bare-byte-ring ringbus ringbus-claim ringbus-ref iceoryx
        ;;
    broadcast-large*) draw "$data" "$name" "A publish of 64 KiB" "readers" "ns" 2 ;;
    broadcast*) draw "$data" "$name" "A publish of 1 KiB" "readers" "ns" 2 ;;
    idle-links*) draw "$data" "$name" "A look, and a round trip, among idle links" "links" "ns" 2 ;;
    fan*) draw "$data" "$name" "Many to one, one to many" "links" "messages a second" "(\$2*1e6)" ;;
    esac
done
