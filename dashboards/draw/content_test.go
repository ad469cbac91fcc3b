// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/units"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/dashboards"
)

// empty has the panels without data in the pictures, by dashboard and title, and the reason. The recorded run is
// successful except for one endpoint.
var empty = map[string]string{
	"bellwether-rollout: Burn of the release":                     "no release burns its budget at the end",
	"bellwether-operator: Not measured":                           "all that is expected is measured",
	"bellwether-operator: Memory of its limit":                    "the testbed has no kubelets",
	"bellwether-operator: CPU periods that were throttled":        "the testbed has no kubelets",
	"bellwether-operator: Volumes, used":                          "the operator has no volumes",
	"bellwether-operator: Certificates expire in":                 "the probed endpoint has no certificate",
	"bellwether-cluster: Slices that never arrived":               "all slices arrive",
	"bellwether-cluster: Not measured":                            "all that is expected is measured",
	"bellwether-internals: Failed admission requests":             "the hub has no webhooks",
	"bellwether-catalog: Clusters on blocked versions, over time": "no version is blocked",
	"bellwether-paging: Not measured":                             "all that is expected is measured",
	"bellwether-paging: Change events":                            "the policy asks for no change events",
}

// TestEveryPanelHasData fails for a panel whose queries were changed after the data was recorded, and for a panel
// without data.
func TestEveryPanelHasData(t *testing.T) {
	for _, d := range dashboards.All() {
		data, err := LoadRecorded(*d.Uid)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range d.Panels {
			if p.Panel == nil {
				continue
			}
			name := *d.Uid + ": " + *p.Panel.Title
			c := newContent(p.Panel, data.Queries[*p.Panel.Title])
			why, may := empty[name]
			switch {
			case !c.recorded:
				t.Errorf("%s: its queries were changed: run make pictures", name)
			case len(c.series) == 0 && !may:
				t.Errorf("%s shows %q: record a run in which it has data, or add it to the map empty with the reason",
					name, c.noData)
			case len(c.series) > 0 && may:
				t.Errorf("%s has data, although %s", name, why)
			}
		}
	}
}

// TestChangedQuery: a panel whose query was changed after the recording must not show the results of the old query.
func TestChangedQuery(t *testing.T) {
	p := &dashboard.Panel{Type: "stat", FieldConfig: dashboard.NewFieldConfigSource(), Targets: nil}
	p.Targets = append(p.Targets, prometheus.Dataquery{RefId: ptr.To("A"), Expr: "now"})
	answers := map[string]Answer{"A": {Expr: "before", Series: []Series{{Values: []*float64{ptr.To(42.)}}}}}
	pic := &picture{}
	pic.drawContent(box{0, 0, 200, 50}, newContent(p, answers))
	if text := pic.String(); strings.Contains(text, "42") || !strings.Contains(text, "not recorded") {
		t.Error(text)
	}
	answers["A"] = Answer{Expr: "now", Series: answers["A"].Series}
	pic = &picture{}
	pic.drawContent(box{0, 0, 200, 50}, newContent(p, answers))
	if text := pic.String(); !strings.Contains(text, "42") {
		t.Error(text)
	}
}

func TestValues(t *testing.T) {
	for want, given := range map[string]struct {
		look  valueStyle
		value float64
	}{
		"99.95 %": {valueStyle{unit: units.PercentUnit, decimals: ptr.To(3.)}, 0.9995},
		"0 %":     {valueStyle{unit: units.PercentUnit}, 0}, "-25 %": {valueStyle{unit: units.PercentUnit}, -0.25},
		"90 s": {valueStyle{unit: units.Seconds}, 90}, "12.3 ms": {valueStyle{unit: units.Seconds}, 0.01234},
		"30 d":  {valueStyle{unit: units.DurationSeconds}, 30 * 86400},
		"5 min": {valueStyle{unit: units.DurationSeconds}, 300},
		"14.4x": {valueStyle{unit: "suffix:x"}, 14.4}, "64 MiB": {valueStyle{unit: units.BytesIEC}, 64 << 20},
		"1234": {valueStyle{unit: units.Short}, 1234}, "0.25 ops/s": {valueStyle{unit: units.OpsPerSecond}, 0.25},
	} {
		if got := given.look.format(given.value); got != want {
			t.Errorf("%v in %s is %q, want %q", given.value, given.look.unit, got, want)
		}
	}
}

func TestLegends(t *testing.T) {
	labels := map[string]string{"operator": "echo", "cluster": "eu"}
	for legend, want := range map[string]string{
		"{{operator}} {{sli}} {{cluster}}{{version}}": "echo eu", "succeeded": "succeeded", "": "",
	} {
		if got := expandLegend(legend, labels); got != want {
			t.Errorf("%q is %q, want %q", legend, got, want)
		}
	}
}

// TestRows merges the answers of two queries, of which the second has fewer rows, into rows.
func TestRows(t *testing.T) {
	c := panelContent{panel: &dashboard.Panel{
		FieldConfig: dashboard.NewFieldConfigSource(), Targets: make([]variants.Dataquery, 2),
		Transformations: []dashboard.DataTransformerConfig{{Id: "organize", Options: map[string]any{
			"indexByName":  map[string]int{"sli": 0, "Value #A": 1, "Value #B": 2},
			"renameByName": map[string]string{"sli": "SLI", "Value #A": "Target", "Value #B": "Bad"},
		}}},
	}}
	add := func(ref, sli string, value float64) {
		c.series = append(c.series, namedSeries{Series{Labels: map[string]string{"sli": sli},
			Values: []*float64{&value}}, ref, ""})
	}
	add("A", "csv", 0.995)
	add("A", "catalog", 0.99)
	add("B", "catalog", 3)
	g := toGrid(c)
	want := [][]any{{"csv", 0.995, nil}, {"catalog", 0.99, 3.}}
	if diff := cmp.Diff(want, g.rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"SLI", "Target", "Bad"}, g.titles); diff != "" {
		t.Error(diff)
	}
}

// TestGapsStayGaps draws a line in two pieces.
func TestGapsStayGaps(t *testing.T) {
	one := 1.
	got := box{0, 0, 40, 10}.toPoints([]*float64{&one, &one, nil, &one, &one}, scale{0, 2})
	want := [][]point{{{0, 5}, {10, 5}}, {{30, 5}, {40, 5}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(point{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestScaleIsRound(t *testing.T) {
	for given, want := range map[scale]scale{
		{0, 1}: {0, 1}, {0, 0.3}: {0, 0.32}, {0, 29}: {0, 32}, {-0.2, 0.9}: {-0.4, 1.2},
	} {
		if got := given.roundOut(4, 0); got != want {
			t.Errorf("%v is %v, want %v", given, got, want)
		}
	}
	if got := (scale{0, 1}).roundOut(4, 1); got != (scale{0, 4}) {
		t.Errorf("in steps of whole numbers it is %v", got)
	}
}
