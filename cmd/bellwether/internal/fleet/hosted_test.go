// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import "testing"

func TestFreePorts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		taken []portRange
		want  portRange
		ok    bool
	}{
		"none is taken":            {nil, portRange{50100, 50129}, true},
		"behind the first":         {[]portRange{{50100, 50129}}, portRange{50130, 50159}, true},
		"in a gap":                 {[]portRange{{50160, 50169}, {50100, 50129}}, portRange{50130, 50159}, true},
		"behind a narrow gap":      {[]portRange{{50100, 50129}, {50159, 50200}}, portRange{50201, 50230}, true},
		"those below do not count": {[]portRange{{100, 200}}, portRange{50100, 50129}, true},
		"ranges in one another":    {[]portRange{{50100, 50300}, {50110, 50120}}, portRange{50301, 50330}, true},
		"all are taken":            {[]portRange{{50100, 65520}}, portRange{65521, 65550}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, ok := freePorts(test.taken); got != test.want || ok != test.ok {
				t.Errorf("%v, %t; want %v, %t", got, ok, test.want, test.ok)
			}
		})
	}
}
