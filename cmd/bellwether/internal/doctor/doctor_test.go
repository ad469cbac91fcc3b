// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	command "github.com/bellwether-dev/bellwether/cmd/bellwether/internal/doctor"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/explain/doctor"
)

// TestDoctorOfNoHub checks that a cluster without an installation has critical findings, each with a remedy.
func TestDoctorOfNoHub(t *testing.T) {
	h := clitest.NewHub()
	got := h.Run(t, "doctor")
	for _, want := range []string{"✗ Critical (Hub): there is no Deployment of the hub in namespace " +
		"bellwether-system on the hub.\n  - Install it, or name its namespace with --system-namespace:\n" +
		"      bellwether install hub\n",
		"\nNot checked\n", "✓ Nothing found: "} {
		if got.Code != 2 || !strings.Contains(got.Out, want) || got.Err != "" {
			t.Errorf("exit code %d, and no %q in\n%s%s", got.Code, want, got.Out, got.Err)
		}
	}
	data := h.Run(t, "doctor", "-o", "json")
	var report doctor.Report
	if err := json.Unmarshal([]byte(data.Out), &report); err != nil || data.Code != 2 || report.Kind != doctor.Kind {
		t.Errorf("as data, with exit code %d: %v\n%s", data.Code, err, data.Out)
	}
}

// TestRender checks the output on a terminal of 72 columns.
func TestRender(t *testing.T) {
	t.Parallel()
	got := command.Render(doctor.Report{
		Findings: []doctor.Finding{
			{Severity: doctor.Critical, Check: doctor.CheckWebhooks, Text: "webhook guard.example.com of " +
				"ValidatingWebhookConfiguration guard on the hub leads to Service guard/guard, which does not exist: " +
				"requests fail that it is asked about, those of Bellwether among them", Remedies: []remedy.Action{
				{Text: "Start what serves it", Command: "kubectl -n guard get service,endpointslices,pods " +
					"--field-selector metadata.name=guard"}}},
			{Severity: doctor.Warning, Check: doctor.CheckClocks, Text: "the clock is off",
				Remedies: []remedy.Action{{Text: "Correct it"}}},
		},
		NotChecked: []doctor.Gap{{Check: doctor.CheckHub, What: "Deployments", Why: "forbidden"}},
		Passed:     []doctor.Check{doctor.CheckOLM, doctor.CheckVersions},
	}, term.Style{Width: 72})
	const want = "✗ Critical (Webhooks): webhook guard.example.com of\n" +
		"  ValidatingWebhookConfiguration guard on the hub leads to Service\n" +
		"  guard/guard, which does not exist: requests fail that it is asked\n" +
		"  about, those of Bellwether among them.\n" +
		"  - Start what serves it:\n" +
		"      kubectl -n guard get service,endpointslices,pods --field-selector metadata.name=guard\n" +
		"\n" +
		"✗ Warning (Clocks): the clock is off.\n" +
		"  - Correct it.\n" +
		"\n" +
		"Not checked\n" +
		"  - Hub: Deployments: forbidden.\n" +
		"\n" +
		"✓ Nothing found: OLM, Versions.\n" +
		"1 critical, 1 warning, 1 not checked.\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}
