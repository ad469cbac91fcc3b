// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
)

// Explained prints one object: its name; or its explanation, where data is asked
// for; or its details as text, followed by what the explanation says of a state
// that is not healthy.
func (a *Env) Explained(o *Output, obj runtime.Object, e explain.Explanation, details func(term.Style) string) error {
	if o.Format == OutputName {
		return o.Object(a.Streams.Out, obj)
	}
	if !o.Table() {
		return o.Value(a.Streams.Out, e)
	}
	style := a.StyleOf(o)
	a.Say("%s", details(style))
	if e.State != explain.Healthy {
		a.Say("%s", term.Verdict(e, a.Now(), style))
	}
	return nil
}
