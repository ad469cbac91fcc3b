// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain"
)

// PrintExplained prints one object in the format of o: its name; its explanation as data; or its details as text. The
// text is followed by the explanation if the state of the object is not healthy.
func (a *Env) PrintExplained(o *Output, obj runtime.Object, e explain.Explanation,
	details func(term.Style) string) error {
	if o.Format == OutputName {
		return o.Object(a.Streams.Out, obj)
	}
	if !o.Table() {
		return o.Value(a.Streams.Out, e)
	}
	style := a.StyleOf(o)
	a.Say("%s", details(style))
	if e.State != explain.Healthy {
		a.Say("%s", term.RenderVerdict(e, a.Now(), style))
	}
	return nil
}
