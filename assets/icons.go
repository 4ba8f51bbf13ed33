package assets

import (
	"math"
	"strconv"
	"strings"
)

// Icon gives the SVG of a small icon, or nil for an unknown name. Icons are
// drawn here as strokes on a 24 x 24 grid and written out as filled shapes,
// because Fyne recolours fills only.
func Icon(name string) []byte {
	strokes, ok := icons[name]
	if !ok {
		return nil
	}
	// One path for all strokes: reading it costs by the element. Every piece
	// turns the same way, so that overlaps add up and never cancel.
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24" viewBox="0 0 24 24"><path fill="#000" d="`)
	for _, s := range strings.Split(strokes, ";") {
		drawStroke(&b, strings.Fields(s))
	}
	b.WriteString(`"/></svg>`)
	return []byte(b.String())
}

// IconNames lists the icons, for tests.
func IconNames() []string {
	names := make([]string, 0, len(icons))
	for n := range icons {
		names = append(names, n)
	}
	return names
}

// The strokes, separated by semicolons:
//
//	L x,y x,y ...     open line
//	P x,y x,y ...     closed line
//	F x,y x,y ...     filled polygon
//	C x,y,r           circle
//	D x,y,r           filled circle
//	R x,y,w,h,r       rounded rectangle
//	A x,y,r,from,to   arc, degrees clockwise from the top
var icons = map[string]string{
	// pages
	"chat":     "L 5,4.5 19,4.5; L 5,16.5 7,16.5 7,20.5 11.5,16.5 19,16.5; A 5,6.5,2,270,360; A 19,6.5,2,0,90; A 19,14.5,2,90,180; A 5,14.5,2,180,270; L 3,6.5 3,14.5; L 21,6.5 21,14.5; L 7.5,8.8 16.5,8.8; L 7.5,12.2 13,12.2",
	"packs":    "P 12,3 21,7.5 12,12 3,7.5; L 3,12 12,16.5 21,12; L 3,16.5 12,21 21,16.5",
	"card":     "R 3,6,18,11,1.5; C 9,11.5,2.6; C 15.8,11.5,2.6; L 6,17 6,20 11,20 11,17",
	"monitor":  "L 3,4 3,20 21,20; L 6,15 10,9.5 13.5,13 20,5",
	"serve":    "R 3,4,18,6.4,1.5; R 3,13.6,18,6.4,1.5; D 7,7.2,1.1; D 7,16.8,1.1; L 12,7.2 17,7.2; L 12,16.8 17,16.8",
	"settings": "L 3,7 12,7; L 18,7 21,7; C 15,7,2.6; L 3,17 6,17; L 12,17 21,17; C 9,17,2.6",
	// actions
	"add":      "L 12,5 12,19; L 5,12 19,12",
	"search":   "C 10.5,10.5,6; L 15,15 20.5,20.5",
	"copy":     "R 8,8,12,12,2; L 5,16 4,16 4,4 16,4 16,5",
	"check":    "L 4.5,12.5 9.5,17.5 19.5,6.5",
	"retry":    "A 12,12,7.5,60,345; L 20,3.5 19.2,8.6 14.2,7.7",
	"branch":   "C 6.5,5.5,2.2; C 6.5,18.5,2.2; C 17.5,8.5,2.2; L 6.5,8 6.5,16; L 17.5,11 17.5,12.2 15.5,14 8.5,14",
	"edit":     "P 4,20 5.2,15.4 16,4.6 19.4,8 8.6,18.8; L 13.6,7 17,10.4",
	"stop":     "F 6.5,6.5 17.5,6.5 17.5,17.5 6.5,17.5",
	"send":     "L 12,19.5 12,5; L 5.5,11.5 12,5 18.5,11.5",
	"trash":    "L 4,6.5 20,6.5; L 9,6.5 9,4 15,4 15,6.5; L 6,6.5 7,20 17,20 18,6.5; L 10.2,10.5 10.4,16; L 13.8,10.5 13.6,16",
	"download": "L 12,4 12,15; L 7,10.5 12,15.5 17,10.5; L 4,20 20,20",
	"upload":   "L 12,16 12,5; L 7,9.5 12,4.5 17,9.5; L 4,20 20,20",
	"pause":    "L 8.5,6 8.5,18; L 15.5,6 15.5,18",
	"play":     "P 7.5,5 18.5,12 7.5,19",
	"folder":   "P 3,6 9.5,6 11.5,8.5 21,8.5 21,19 3,19",
	"file":     "P 6,3 14,3 19,8 19,21 6,21; L 14,3 14,8 19,8",
	"link":     "L 10,14 14,10; L 8,11 5.5,13.5 5.5,16 8,18.5 10.5,18.5 13,16; L 16,13 18.5,10.5 18.5,8 16,5.5 13.5,5.5 11,8",
	"save":     "P 4,4 16.5,4 20,7.5 20,20 4,20; L 8,4 8,9 15,9 15,4; R 8,13,8,7,0.5",
	"close":    "L 6,6 18,18; L 18,6 6,18",
	"more":     "D 5.5,12,1.6; D 12,12,1.6; D 18.5,12,1.6",
	"down":     "L 6,9.5 12,15.5 18,9.5",
	"up":       "L 6,14.5 12,8.5 18,14.5",
	"left":     "L 14.5,6 8.5,12 14.5,18",
	"right":    "L 9.5,6 15.5,12 9.5,18",
	"bottom":   "L 12,4 12,16; L 6.5,10.5 12,16 17.5,10.5; L 5,20 19,20",
	"wrap":     "L 4,6 20,6; L 4,12 17,12; A 17,15,3,0,180; L 17,18 11,18; L 13.5,15.5 11,18 13.5,20.5; L 4,18 7,18",
	"text":     "L 5,5 19,5; L 12,5 12,19; L 9,19 15,19",
	"sliders":  "L 6,4 6,9; L 6,15 6,20; C 6,12,2.4; L 12,4 12,6; L 12,11 12,20; C 12,8.5,2.4; L 18,4 18,13; L 18,18 18,20; C 18,15.6,2.4",
	"image":    "R 3,5,18,14,1.5; C 8.2,9.8,1.6; L 4,17.5 9.5,12.5 13,15.5 16.5,11.5 20.5,15.5",
	"table":    "R 3,5,18,14,1.5; L 3,9.7 21,9.7; L 3,14.3 21,14.3; L 10,5 10,19",
	"attach":   "L 17,8 17,16 15.6,18.8 12.5,20 9.4,18.8 8,16 8,7 9,4.8 11,4 13,4.8 14,7 14,15 12.5,16.4 11,15 11,8",
	"key":      "C 7.5,14.5,3.6; L 10.2,11.8 19,3.5; L 15.2,7 18.2,10; L 17.4,5 20,7.6",
	"window":   "R 3,4.5,18,15,1.5; L 3,9 21,9",
	"power":    "L 12,3 12,11; A 12,13,7.2,38,322",
	// states
	"info":     "C 12,12,8.5; L 12,11 12,16.2; D 12,7.8,1.2",
	"warning":  "P 12,4 21,19.5 3,19.5; L 12,9.5 12,14; D 12,16.7,1.1",
	"error":    "P 8,3.5 16,3.5 20.5,8 20.5,16 16,20.5 8,20.5 3.5,16 3.5,8; L 12,7.5 12,13; D 12,16.2,1.2",
	"ok":       "C 12,12,8.5; L 8,12.3 11,15.2 16.2,9.2",
	"unknown":  "C 12,12,8.5; L 8.5,12 15.5,12",
	"clock":    "C 12,12,8.5; L 12,7 12,12 15.8,14.2",
	"brain":    "D 6,12,1.7; D 12,12,1.7; D 18,12,1.7; A 12,12,9,300,420; A 12,12,9,120,240",
	"shield":   "P 12,3 19.5,6 19.5,12 17.5,16.5 12,21 6.5,16.5 4.5,12 4.5,6; L 8.7,11.6 11.3,14.2 15.5,9.4",
	"terminal": "R 3,4.5,18,15,1.5; L 7,9 10,12 7,15; L 12,15.5 16.5,15.5",
	"history":  "A 12,12,8.2,-60,250; L 3.2,4.2 4.6,8.6 9,7.4; L 12,7.5 12,12 15.4,14",
}

// stroke is the width of a line on the 24 x 24 grid.
const stroke = 1.7

func drawStroke(b *strings.Builder, f []string) {
	if len(f) < 2 {
		return
	}
	switch kind := f[0]; kind {
	case "L", "P":
		pts := points(f[1:])
		if kind == "P" {
			pts = append(pts, pts[0])
		}
		line(b, pts)
	case "F":
		polygon(b, points(f[1:]))
	case "C":
		v := numbers(f[1])
		ring(b, v[0], v[1], v[2])
	case "D":
		v := numbers(f[1])
		disc(b, point{v[0], v[1]}, v[2])
	case "R":
		v := numbers(f[1])
		x, y, w, h, r := v[0], v[1], v[2], v[3], v[4]
		pts := []point{{x + r, y}}
		for i, c := range []point{{x + w - r, y + r}, {x + w - r, y + h - r}, {x + r, y + h - r}, {x + r, y + r}} {
			pts = append(pts, arc(c, r, float64(i)*90, float64(i)*90+90)...)
		}
		line(b, pts)
	case "A":
		v := numbers(f[1])
		line(b, arc(point{v[0], v[1]}, v[2], v[3], v[4]))
	}
}

type point struct{ x, y float64 }

func numbers(s string) []float64 {
	parts := strings.Split(s, ",")
	v := make([]float64, len(parts))
	for i, p := range parts {
		v[i], _ = strconv.ParseFloat(p, 64)
	}
	return v
}

func points(f []string) []point {
	pts := make([]point, len(f))
	for i, s := range f {
		v := numbers(s)
		pts[i] = point{v[0], v[1]}
	}
	return pts
}

// arc gives points on a circle, degrees clockwise from the top.
func arc(c point, r, from, to float64) []point {
	n := int(math.Max(3, math.Abs(to-from)/12))
	pts := make([]point, n+1)
	for i := range pts {
		a := (from + (to-from)*float64(i)/float64(n)) * math.Pi / 180
		pts[i] = point{c.x + r*math.Sin(a), c.y - r*math.Cos(a)}
	}
	return pts
}

// line writes each piece as a bar, and ends and sharp corners as dots, so that
// they are round.
func line(b *strings.Builder, pts []point) {
	const h = stroke / 2
	for i := 1; i < len(pts); i++ {
		p, q := pts[i-1], pts[i]
		dx, dy := q.x-p.x, q.y-p.y
		l := math.Hypot(dx, dy)
		if l == 0 {
			continue
		}
		nx, ny := -dy/l*h, dx/l*h
		polygon(b, []point{{p.x + nx, p.y + ny}, {q.x + nx, q.y + ny}, {q.x - nx, q.y - ny}, {p.x - nx, p.y - ny}})
	}
	for i, p := range pts {
		if i > 0 && i < len(pts)-1 && nearlyStraight(pts[i-1], p, pts[i+1]) {
			continue
		}
		disc(b, p, h)
	}
}

// nearlyStraight says whether a corner is so flat that no gap shows at it.
func nearlyStraight(a, b, c point) bool {
	d := math.Atan2(c.y-b.y, c.x-b.x) - math.Atan2(b.y-a.y, b.x-a.x)
	return math.Abs(math.Remainder(d, 2*math.Pi)) < 0.26
}

// disc writes a filled circle as a polygon of twelve corners.
func disc(b *strings.Builder, c point, r float64) {
	pts := make([]point, 12)
	for i := range pts {
		a := float64(i) * math.Pi / 6
		pts[i] = point{c.x + r*math.Cos(a), c.y + r*math.Sin(a)}
	}
	polygon(b, pts)
}

// polygon writes a filled polygon, always turning the same way.
func polygon(b *strings.Builder, pts []point) {
	area := 0.0
	for i, p := range pts {
		q := pts[(i+1)%len(pts)]
		area += p.x*q.y - q.x*p.y
	}
	for i := range pts {
		p := pts[i]
		if area < 0 {
			p = pts[len(pts)-1-i]
		}
		cmd := "L"
		if i == 0 {
			cmd = "M"
		}
		b.WriteString(cmd + num(p.x) + " " + num(p.y))
	}
	b.WriteString("Z")
}

func ring(b *strings.Builder, x, y, r float64) {
	line(b, arc(point{x, y}, r, 0, 360))
}

func num(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
