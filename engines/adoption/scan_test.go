// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/adoption"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 500, time.UTC)

func echo(namespace string) v1alpha1.FoundOperator {
	return v1alpha1.FoundOperator{Namespace: namespace,
		Subscription: &v1alpha1.FoundSubscription{Name: "echo", Package: "echo"},
		CSV:          &v1alpha1.FoundCSV{Name: "echo.v1.0.0", Version: "1.0.0", Phase: "Succeeded"}}
}

func cluster(operators ...v1alpha1.FoundOperator) v1alpha1.OperatorScanStatus {
	return v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMServed, Operators: operators}
}

func TestNext(t *testing.T) {
	t.Parallel()
	before := metav1.NewTime(noon.Add(-time.Hour).Truncate(time.Second))
	known := cluster(echo("echo"))
	known.ObservedAt = &before
	failing := echo("echo")
	failing.Subscription.NotResolved = "a or b"
	knownFailing := cluster(failing)
	knownFailing.ObservedAt = &before
	otherwise := echo("echo")
	otherwise.Subscription.NotResolved = "b or a"
	noOLM, neverRead := v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMNotServed}, v1alpha1.OperatorScanStatus{
		NotRead: "forbidden"}
	none, two := cluster(), cluster(echo("echo"), echo("more"))
	unread := *known.DeepCopy()
	unread.NotRead = "list Subscriptions: forbidden"
	for name, test := range map[string]struct {
		known, found v1alpha1.OperatorScanStatus
		failure      error
		want         *v1alpha1.OperatorScanStatus // without the time
		at           time.Time
	}{
		"the first report":      {found: cluster(echo("echo")), want: &known, at: noon},
		"no OLM is a report":    {found: noOLM, want: &noOLM, at: noon},
		"nothing changed":       {known: known, found: cluster(echo("echo"))},
		"an operator more":      {known: known, found: two, want: &two, at: noon},
		"all are gone":          {known: known, found: cluster(), want: &none, at: noon},
		"OLM says it otherwise": {known: knownFailing, found: cluster(otherwise)},
		"it resolves again":     {known: knownFailing, found: cluster(echo("echo")), want: &known, at: noon},
		"it cannot be read": {known: known, failure: errors.New("list Subscriptions:\nforbidden"), want: &unread,
			at: before.Time},
		"it still cannot":        {known: unread, failure: errors.New("list Subscriptions: forbidden")},
		"it can be read again":   {known: unread, found: cluster(echo("echo")), want: &known, at: noon},
		"it could never be read": {failure: errors.New("forbidden"), want: &neverRead, at: noon},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := adoption.NextScan(test.known, test.found, test.failure, noon)
			if (got == nil) != (test.want == nil) {
				t.Fatalf("next %+v, want %+v", got, test.want)
			}
			if got == nil {
				return
			}
			want := test.want.DeepCopy()
			want.ObservedAt = &metav1.Time{Time: test.at.Truncate(time.Second)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("next (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSettingsAreWholeOrAbsent checks that settings are never cut, because a part of them would be
// different settings.
func TestSettingsAreWholeOrAbsent(t *testing.T) {
	t.Parallel()
	settings := func(length int) string {
		return v1alpha1.SettingsOf(&v1alpha1.OperatorConfig{NodeSelector: map[string]string{
			"a": strings.Repeat("x", length)}})
	}
	for name, test := range map[string]struct {
		settings string
		kept     bool
	}{"few": {settings(100), true}, "too long": {settings(5000), false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := echo("echo")
			o.Subscription.Settings = test.settings
			got := adoption.LimitScan(cluster(o))
			kept := got.Operators[0].Subscription.Settings == test.settings
			if kept != test.kept || (got.Truncated == nil) != test.kept {
				t.Errorf("kept %t, want %t; truncated %+v", kept, test.kept, got.Truncated)
			}
		})
	}
}

// hostile returns a cluster with so many operators, each with lists and texts of such a size.
func hostile(operators, entries, length int) v1alpha1.OperatorScanStatus {
	text := strings.Repeat("\"ä\n", length)
	texts := make([]string, entries)
	for i := range texts {
		texts[i] = fmt.Sprint(i) + text
	}
	s := v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMServed}
	for i := range operators {
		namespace := fmt.Sprintf("n%05d", i)
		o := v1alpha1.FoundOperator{Namespace: namespace, Managed: i%2 == 0,
			Operator: &v1alpha1.OperatorReference{Namespace: text, Name: text},
			Subscription: &v1alpha1.FoundSubscription{Name: text, Package: text, Channel: text, Source: text,
				SourceNamespace: text, Approval: text, StartingCSV: text, Config: texts, ConfigNotSupported: texts,
				InstalledCSV: text, CurrentCSV: text, InstallPlan: text, NotResolved: text, GitOps: text,
				Writers: texts, Finalizers: texts, Settings: text},
			CSV: &v1alpha1.FoundCSV{Name: text, Version: text, Phase: text, Reason: text, Message: text, Replaces: text,
				Missing: texts, Required: texts, EditedBy: texts, Finalizers: texts}}
		n := v1alpha1.FoundNamespace{Name: namespace}
		for _, text := range texts {
			o.CSV.Owned = append(o.CSV.Owned, v1alpha1.FoundDefinition{Name: text, Version: text, Kind: text})
			o.CSV.Deployments = append(o.CSV.Deployments, v1alpha1.FoundDeployment{Name: text, Replicas: -1,
				Ready: 1 << 30, Bundle: 1 << 30})
			o.Others = append(o.Others, v1alpha1.FoundVersion{Name: text, Phase: text})
			n.OperatorGroups = append(n.OperatorGroups, v1alpha1.FoundOperatorGroup{Name: text, Targets: texts,
				ServiceAccount: text})
			n.InstallPlans = append(n.InstallPlans, v1alpha1.FoundInstallPlan{Name: text, Phase: text, CSVs: texts})
		}
		s.Operators, s.Namespaces = append(s.Operators, o), append(s.Namespaces, n)
		s.CatalogSources = append(s.CatalogSources, v1alpha1.FoundCatalogSource{Namespace: text, Name: text,
			State: text, Image: text})
		s.OwnerlessDefinitions = append(s.OwnerlessDefinitions, text)
	}
	return s
}

// TestBound: whatever a cluster has, its report has at most 64 KiB, the API server accepts it, and what is missing is
// counted.
func TestBound(t *testing.T) {
	t.Parallel()
	validate := validator(t)
	for name, found := range map[string]v1alpha1.OperatorScanStatus{
		"nothing":        {OLM: v1alpha1.OLMServed},
		"many small":     hostile(1000, 0, 2),
		"few large":      hostile(3, 200, 400),
		"many large":     hostile(300, 20, 100),
		"one very large": hostile(1, 1000, 1000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := adoption.NextScan(v1alpha1.OperatorScanStatus{}, found, nil, noon)
			text, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if len(text) > adoption.MaxScanBytes {
				t.Errorf("%d bytes, want at most %d", len(text), adoption.MaxScanBytes)
			}
			if err := validate(text); err != nil {
				t.Errorf("the API server would refuse it: %v", err)
			}
			missing := v1alpha1.ScanTruncation{}
			if got.Truncated != nil {
				missing = *got.Truncated
			}
			if n := len(got.Operators) + int(missing.Operators); n != len(found.Operators) {
				t.Errorf("%d operators and %d left out, want %d", len(got.Operators), missing.Operators,
					len(found.Operators))
			}
			unmanaged := 0
			for _, o := range got.Operators {
				if !o.Managed {
					unmanaged++
				}
			}
			if missing.Operators > 0 && unmanaged < len(got.Operators) && unmanaged != len(found.Operators)/2 {
				t.Errorf("%d of %d operators here are not managed, though others of these were left out", unmanaged,
					len(got.Operators))
			}
			// The next report of the same cluster is the same.
			if again := adoption.NextScan(*got, found, nil, noon.Add(time.Hour)); again != nil {
				t.Error("nothing changed, and it is written again")
			}
		})
	}
}

// validator returns the API server's validation of a status.
func validator(t *testing.T) func(status []byte) error {
	t.Helper()
	text, err := os.ReadFile("../../charts/bellwether/files/crds/bellwether.dev_operatorscans.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd, internal := &apiextensionsv1.CustomResourceDefinition{}, &apiextensions.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		t.Fatal(err)
	}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	err = apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, internal, nil)
	if err != nil {
		t.Fatal(err)
	}
	validate, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		t.Fatal(err)
	}
	return func(status []byte) error {
		var value any
		if err := json.Unmarshal(status, &value); err != nil {
			return err
		}
		return validation.ValidateCustomResource(nil, map[string]any{"status": value}, validate).ToAggregate()
	}
}
