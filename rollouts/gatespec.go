// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Defaults of gates, as their API documents them.
const (
	// DefaultMaxBurnRate is the threshold of the fastest page.
	DefaultMaxBurnRate = "14.4"
	// DefaultConfidence is in percent.
	DefaultConfidence = 99
	// DefaultMinSamples is how many samples a comparison needs on each side.
	DefaultMinSamples = 30
	// DefaultFailureLimit is how many measurements in a row a query may miss.
	DefaultFailureLimit = 2
	// MinDefaultWindow is how long a wave with a shorter soak is measured.
	MinDefaultWindow = 5 * time.Minute
	// MinWindow is the shortest window of a gate: two measurements.
	MinWindow = time.Minute
)

// withDefaults returns the gates of a wave with every default made explicit. It does
// not change its argument.
func withDefaults(gates []v1alpha1.Gate, soak time.Duration) []v1alpha1.Gate {
	window := metav1.Duration{Duration: max(soak, MinDefaultWindow)}
	out := slices.Clone(gates)
	for i := range out {
		out[i] = *out[i].DeepCopy()
		switch g := &out[i]; {
		case g.SLO != nil:
			g.SLO.MaxBurnRate = cmp.Or(g.SLO.MaxBurnRate, DefaultMaxBurnRate)
			g.SLO.Window = orValue(g.SLO.Window, window)
		case g.Baseline != nil:
			g.Baseline.Confidence = orValue(g.Baseline.Confidence, int32(DefaultConfidence))
			g.Baseline.MinSamples = orValue(g.Baseline.MinSamples, int32(DefaultMinSamples))
			g.Baseline.Window = orValue(g.Baseline.Window, window)
		case g.PromQL != nil:
			g.PromQL.FailureLimit = orValue(g.PromQL.FailureLimit, int32(DefaultFailureLimit))
			g.PromQL.Window = orValue(g.PromQL.Window, window)
		case g.Job != nil:
			g.Job.Timeout = orValue(g.Job.Timeout, metav1.Duration{Duration: DefaultJobTimeout})
		}
	}
	return out
}

// validateGates finds gates that can never be passed. Their queries see no more than a scope.
func validateGates(w v1alpha1.Wave, path *field.Path, scope slo.Scope) field.ErrorList {
	var problems field.ErrorList
	for i, g := range w.Gates {
		at := path.Child("gates").Index(i)
		if n := countKinds(g); n != 1 {
			problems = append(problems, field.Invalid(at, g.Name,
				"a gate needs exactly one of approval, slo, baseline, promQL and job"))
			continue
		}
		if w := GateWindow(g); w != 0 && w < MinWindow {
			problems = append(problems, field.Invalid(at.Child("window"), w.String(), "must be at least 1m"))
		}
		switch {
		case g.SLO != nil && g.SLO.MaxBurnRate != "":
			problems = append(problems, validateNumber(at.Child("slo", "maxBurnRate"), g.SLO.MaxBurnRate)...)
		case g.Baseline != nil && takesAll(w):
			problems = append(problems, field.Invalid(at.Child("baseline"), g.Name,
				"the wave takes all clusters that are left, so none remains on another release to compare with"))
		case g.PromQL != nil:
			problems = append(problems, validateNumber(at.Child("promQL", "threshold"), g.PromQL.Threshold)...)
			problems = append(problems, validateQuery(at.Child("promQL", "query"), g, scope)...)
		case g.Job != nil:
			problems = append(problems, validateJob(at.Child("job"), g.Job.JobTemplate)...)
		}
	}
	return problems
}

func countKinds(g v1alpha1.Gate) int {
	n := 0
	for _, has := range []bool{g.Approval != nil, g.SLO != nil, g.Baseline != nil, g.PromQL != nil,
		g.Job != nil} {
		if has {
			n++
		}
	}
	return n
}

func validateNumber(path *field.Path, text string) field.ErrorList {
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return field.ErrorList{field.Invalid(path, text, "must be a decimal number")}
	}
	return nil
}

// ofTenants is a scope as gates of ManagedOperators have it.
var ofTenants = slo.Scope{Clusters: "a|b", Namespace: "a", OperatorNamespace: "a"}

// validateQuery finds variables that do not exist, queries of all clusters, and those that read too much.
func validateQuery(path *field.Path, g v1alpha1.Gate, scope slo.Scope) field.ErrorList {
	text := g.PromQL.Query
	var problems field.ErrorList
	isOfRelease := false
	for _, found := range variable.FindAllStringSubmatch(text, -1) {
		name := found[1]
		if _, ok := variables[name]; !ok {
			known := strings.Join(slices.Sorted(maps.Keys(variables)), ", ")
			problems = append(problems, field.Invalid(path, found[0], "is not a variable: use one of "+known))
		}
		isOfRelease = isOfRelease || name == "clusters" || name == "release"
	}
	if len(problems) == 0 {
		window := max(GateWindow(g), MinWindow)
		example := query{ro: &v1alpha1.OperatorRollout{}, wave: "a", clusters: "a|b", release: "a",
			window: fmt.Sprintf("%.0fs", window.Seconds()), seconds: window.Seconds()}
		if _, err := slo.Restrict(example.expand(text), scope); err != nil {
			problems = append(problems, field.Invalid(path, text, err.Error()))
		}
	}
	if !isOfRelease {
		problems = append(problems, field.Invalid(path, text,
			"must use ${clusters} or ${release}, so that it measures the new release only"))
	}
	return problems
}
