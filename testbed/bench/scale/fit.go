// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import "math"

// plane is base + x·X + y·Y.
type plane struct{ base, x, y float64 }

func (p plane) at(x, y float64) float64 { return p.base + p.x*x + p.y*y }

// fitPlane returns the plane with the least squares of distances to values; false where the points do not determine
// one.
func fitPlane(xs, ys, values []float64) (plane, bool) {
	m := normalEquations(xs, ys, values)
	for a := range m {
		if !m.eliminate(a) {
			return plane{}, false
		}
	}
	return plane{m[0][3] / m[0][0], m[1][3] / m[1][1], m[2][3] / m[2][2]}, true
}

// equations are linear ones, with their right sides in the last column.
type equations [3][4]float64

func normalEquations(xs, ys, values []float64) equations {
	var m equations
	for i := range values {
		row := [3]float64{1, xs[i], ys[i]}
		for a := range 3 {
			for b := range 3 {
				m[a][b] += row[a] * row[b]
			}
			m[a][3] += row[a] * values[i]
		}
	}
	return m
}

// eliminate takes a variable out of all equations but one; false where none has it.
func (m *equations) eliminate(a int) bool {
	pivot := a
	for b := a + 1; b < len(m); b++ {
		if math.Abs(m[b][a]) > math.Abs(m[pivot][a]) {
			pivot = b
		}
	}
	m[a], m[pivot] = m[pivot], m[a]
	if math.Abs(m[a][a]) < 1e-9 {
		return false
	}
	for b := range m {
		if b == a {
			continue
		}
		factor := m[b][a] / m[a][a]
		for c := a; c < len(m[b]); c++ {
			m[b][c] -= factor * m[a][c]
		}
	}
	return true
}
