// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package term

import (
	"testing"
)

func TestLines(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		width int
		want  int
	}{
		"one":               {text: "a\n", width: 10, want: 1},
		"two":               {text: "a\nb\n", width: 10, want: 2},
		"wrapped":           {text: "aaaaaaaaaaa\n", width: 10, want: 2},
		"exactly full":      {text: "aaaaaaaaaa\n", width: 10, want: 1},
		"colour is nothing": {text: Style{Colour: true}.Paint(Bad, "aaaaaaaaaa") + "\n", width: 10, want: 1},
		"unknown width":     {text: "aaaaaaaaaaaaaaaaaaaaaa\n", want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Lines(test.text, test.width); got != test.want {
				t.Errorf("%d lines, want %d", got, test.want)
			}
		})
	}
}
