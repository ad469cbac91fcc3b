// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func admitted(hash string, revision int64) *v1alpha1.OperatorInstall {
	return &v1alpha1.OperatorInstall{
		ObjectMeta: metav1.ObjectMeta{Generation: 3},
		Spec: v1alpha1.OperatorInstallSpec{Admission: &v1alpha1.Admission{Revision: revision, Hash: hash,
			Release: v1alpha1.Release{Bundle: "echo.v1.0.0"}}},
	}
}

func TestReady(t *testing.T) {
	finding := func(problem bool, reason string) *Finding {
		return &Finding{Problem: problem, Reason: reason, Message: "It is " + reason + "."}
	}
	for name, test := range map[string]struct {
		report  Report
		ready   bool
		reason  string
		message string
		stalled bool
	}{
		"installed and healthy": {report: Report{Complete: true}, ready: true, reason: v1alpha1.ReasonSucceeded,
			message: "echo.v1.0.0 runs."},
		"installed and not healthy": {
			report: Report{Complete: true, Health: finding(false, v1alpha1.ReasonPodsUnavailable)},
			reason: v1alpha1.ReasonPodsUnavailable, message: "It is PodsUnavailable."},
		"scaled to zero": {report: Report{Complete: true, Health: finding(true, v1alpha1.ReasonScaledToZero)},
			reason: v1alpha1.ReasonScaledToZero, message: "It is ScaledToZero.", stalled: true},
		"installed, and the engine has a problem": {
			report: Report{Complete: true, Progress: finding(true, v1alpha1.ReasonCatalogUnreachable)},
			ready:  true, reason: v1alpha1.ReasonSucceeded, message: "echo.v1.0.0 runs. It is CatalogUnreachable."},
		"installed, and the engine has something to do": {
			report: Report{Complete: true, Progress: finding(false, v1alpha1.ReasonProgressing)},
			ready:  true, reason: v1alpha1.ReasonSucceeded, message: "echo.v1.0.0 runs."},
		"being installed": {report: Report{Progress: finding(false, v1alpha1.ReasonProgressing)},
			reason: v1alpha1.ReasonProgressing, message: "It is Progressing."},
		"cannot be installed": {report: Report{Progress: finding(true, v1alpha1.ReasonPlanFailed)},
			reason: v1alpha1.ReasonPlanFailed, message: "It is PlanFailed.", stalled: true},
		"an unhealthy version is to be replaced": {
			report: Report{Progress: finding(false, v1alpha1.ReasonProgressing),
				Health: finding(true, v1alpha1.ReasonScaledToZero)},
			reason: v1alpha1.ReasonProgressing, message: "It is Progressing."},
	} {
		t.Run(name, func(t *testing.T) {
			status := Status(admitted("a", 1), test.report, now)
			ready := conditions.Get(status.Conditions, v1alpha1.ConditionReady)
			if got := ready.Status == metav1.ConditionTrue; got != test.ready || ready.Reason != test.reason ||
				ready.Message != test.message || ready.ObservedGeneration != 3 {
				t.Errorf("Ready is %+v", ready)
			}
			if got := conditions.IsTrue(status.Conditions, v1alpha1.ConditionStalled); got != test.stalled {
				t.Errorf("Stalled is %v, want %v", got, test.stalled)
			}
		})
	}
}

// TestSuccessIsRecordedOnceForEachAdmission checks that the time of success is the time of the first report of
// success since the release was admitted.
func TestSuccessIsRecordedOnceForEachAdmission(t *testing.T) {
	complete, unfinished := Report{Complete: true}, Report{Progress: &Finding{Reason: v1alpha1.ReasonProgressing}}
	steps := []struct {
		hash   string
		report Report
		want   string
		at     time.Duration
	}{
		{"a", unfinished, "", 0},
		{"a", complete, "a", time.Minute},
		{"a", complete, "a", time.Minute},
		{"a", unfinished, "a", time.Minute}, // it was installed, and is damaged now
		{"b", unfinished, "", 0},
		{"a", unfinished, "", 0}, // back to it: that has to succeed again
		{"a", complete, "a", 6 * time.Minute},
		{"c", complete, "c", 7 * time.Minute},
	}
	var status v1alpha1.OperatorInstallStatus
	for i, step := range steps {
		install := admitted(step.hash, int64(i+1))
		install.Status = status
		status = Status(install, step.report, now.Add(time.Duration(i)*time.Minute))
		if status.SucceededHash != step.want || status.ObservedRevision != int64(i+1) {
			t.Fatalf("step %d: succeeded %q, revision %d", i, status.SucceededHash, status.ObservedRevision)
		}
		if step.want != "" && !status.SucceededAt.Time.Equal(now.Add(step.at)) {
			t.Fatalf("step %d: succeeded at %v", i, status.SucceededAt)
		}
		if step.want == "" && status.SucceededAt != nil {
			t.Fatalf("step %d: a time without success", i)
		}
	}
}

func TestRefuse(t *testing.T) {
	old := admitted("a", 1)
	old.Status.ObservedRevision = 2
	old.Status.Installed = &v1alpha1.InstalledVersion{Bundle: "echo.v1.1.0"}
	deleting := admitted("a", 1)
	deleting.Status.ObservedRevision, deleting.DeletionTimestamp = 2, &metav1.Time{Time: now}
	for name, test := range map[string]struct {
		install *v1alpha1.OperatorInstall
		want    string
	}{
		"admitted":                  {admitted("a", 1), ""},
		"not admitted":              {&v1alpha1.OperatorInstall{}, v1alpha1.ReasonNotAdmitted},
		"an older admission":        {old, v1alpha1.ReasonStaleAdmission},
		"whatever it is, it leaves": {deleting, ""},
	} {
		t.Run(name, func(t *testing.T) {
			finding := Refuse(test.install, nil)
			if test.want == "" {
				if finding != nil {
					t.Errorf("refused: %+v", finding)
				}
				return
			}
			if finding == nil || finding.Reason != test.want {
				t.Fatalf("%+v, want %s", finding, test.want)
			}
			status := RefusedStatus(test.install, nil, *finding)
			if ready := conditions.Get(status.Conditions, v1alpha1.ConditionReady); ready.Reason != test.want {
				t.Errorf("Ready is %+v", ready)
			}
			status.Conditions, status.ObservedGeneration = nil, 0
			if diff := cmp.Diff(test.install.Status, status); diff != "" {
				t.Errorf("the status reports what was not observed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestStatusFitsTheAPI has bundles and fields with long names, which catalogs and bundles may have, and many of them.
func TestStatusFitsTheAPI(t *testing.T) {
	install := admitted("a", 1)
	install.Spec.Drift = v1alpha1.DriftCorrect
	long := make([]string, 200)
	for i := range long {
		long[i] = strings.Repeat("ä", 1000)
	}
	report := Report{Path: long}
	_, report.Correction = Correct(install, long, now)
	status := Status(install, report, now)
	fits := func(what string, texts []string, most, longest int) {
		t.Helper()
		if len(texts) != most || utf8.RuneCountInString(texts[0]) != longest {
			t.Errorf("%s: %d texts of %d characters, want %d of %d", what, len(texts),
				utf8.RuneCountInString(texts[0]), most, longest)
		}
	}
	fits("path", status.Path, 100, 253)
	fits("fields", status.Correction.Fields, 3, 600)
}
