// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
)

// fakeEngine plans to serve and to approve, and returns the report of the test.
type fakeEngine struct {
	report    engines.Report
	applied   []string
	admission *v1alpha1.Admission // of the last plan
}

func (*fakeEngine) Observe(context.Context, *v1alpha1.OperatorInstall) (struct{}, error) {
	return struct{}{}, nil
}

func (e *fakeEngine) Plan(install *v1alpha1.OperatorInstall, _ struct{}, _ time.Time) engines.Plan[string] {
	e.admission = install.Spec.Admission
	return engines.Plan[string]{Actions: []string{"serve", "approve"}, Report: e.report}
}

func (*fakeEngine) WhileFrozen(actions []string) []string {
	return slices.DeleteFunc(slices.Clone(actions), func(a string) bool { return a != "serve" })
}

func (e *fakeEngine) Apply(_ context.Context, _ *v1alpha1.OperatorInstall, _ struct{}, actions []string) error {
	e.applied = append(e.applied, actions...)
	return nil
}

var (
	admission = v1alpha1.Admission{Rollout: "echo-2", RolloutUID: "2", Revision: 2, Hash: "new",
		Release: v1alpha1.Release{Version: "1.1.0", Bundle: "echo.v1.1.0"}}
	begun = &engines.Kept{KeptAdmission: v1alpha1.KeptAdmission{Admission: admission}}
	stop  = &v1alpha1.FleetFreeze{ObjectMeta: metav1.ObjectMeta{Name: "incident"},
		Spec: v1alpha1.FleetFreezeSpec{Clusters: []string{"*"}, Reason: "the registry is hostile"}}
	refused = &v1alpha1.ClusterVeto{Reason: "sale"}
)

// TestWhatHoldsUpAnInstall verifies that a FleetFreeze stops an installation that has begun
// too, that a veto of the cluster's owner does not, and that neither trusts the hub about
// whether the installation has begun.
func TestWhatHoldsUpAnInstall(t *testing.T) {
	both, installing := []string{"serve", "approve"}, engines.Report{}
	corrects := engines.Report{Complete: true, Drift: &engines.Drift{Fields: []string{"spec.a"},
		Correction: engines.CorrectionDue}, Correction: &v1alpha1.DriftCorrection{Fields: []string{"spec.a"}, Count: 1}}
	for name, test := range map[string]struct {
		report  engines.Report
		kept    *engines.Kept
		freeze  *v1alpha1.FleetFreeze
		veto    *v1alpha1.ClusterVeto
		leaving bool
		// asInstalled is true if the rollout takes over the installed operator.
		asInstalled bool
		// acted is the revision that the agent has acted on, according to the hub.
		acted   int64
		applied []string
		want    string
		says    string
	}{
		"nothing":              {applied: both, want: "Progressing"},
		"nothing, and it runs": {report: engines.Report{Complete: true}, kept: begun, applied: both, want: "Succeeded"},
		"a veto":               {veto: refused, want: "Vetoed", says: "The change to 1.1.0 does not begin: "},
		"a veto of a take-over": {veto: refused, asInstalled: true, want: "Vetoed",
			says: "The take-over of what is installed does not begin: "},
		"a veto of what has begun":                   {veto: refused, kept: begun, applied: both, want: "Progressing"},
		"a veto, and the hub says that it has begun": {veto: refused, acted: 2, want: "Vetoed"},
		"a freeze":                   {freeze: stop, want: "Frozen"},
		"a freeze of what has begun": {report: installing, freeze: stop, kept: begun, applied: []string{"serve"}, want: "Frozen"},
		"a freeze of what runs":      {report: engines.Report{Complete: true}, freeze: stop, kept: begun, applied: []string{"serve"}, want: "Succeeded"},
		"a freeze of a correction":   {report: corrects, freeze: stop, kept: begun, applied: []string{"serve"}, want: "Succeeded"},
		"a freeze of a removal":      {report: engines.Report{Removed: true}, freeze: stop, kept: begun, leaving: true, want: "Frozen"},
	} {
		t.Run(name, func(t *testing.T) {
			install := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-a", Name: "echo",
				Finalizers: []string{v1alpha1.FinalizerAgent}}}
			install.Spec.Admission = admission.DeepCopy()
			if test.asInstalled {
				install.Spec.Admission.Release = v1alpha1.Release{AsInstalled: true}
			}
			install.Status.ObservedRevision = test.acted
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			hub := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(install).WithObjects(install).
				Build()
			if test.leaving {
				if err := hub.Delete(t.Context(), install); err != nil {
					t.Fatal(err)
				}
			}
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(install), install); err != nil {
				t.Fatal(err)
			}
			engine, recorder := &fakeEngine{report: test.report}, events.NewFakeRecorder(1)
			r := &Reconciler[struct{}, string]{Hub: hub, Engine: engine, Events: recorder, Now: time.Now,
				Veto:   func(context.Context) (*v1alpha1.ClusterVeto, error) { return test.veto, nil },
				Freeze: func(context.Context) (*v1alpha1.FleetFreeze, error) { return test.freeze, nil },
				ReadKept: func(context.Context, v1alpha1.OperatorReference) (*engines.Kept, error) {
					return test.kept, nil
				}}
			if _, err := r.Reconcile(t.Context(), install); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.applied, engine.applied); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			ready := conditions.Get(install.Status.Conditions, v1alpha1.ConditionReady)
			if ready.Reason != test.want || test.want == v1alpha1.ReasonFrozen &&
				!strings.Contains(ready.Message, "the registry is hostile") {
				t.Errorf("%s: %s, want %s", ready.Reason, ready.Message, test.want)
			}
			if !strings.HasPrefix(ready.Message, test.says) {
				t.Errorf("says %q, and not %q", ready.Message, test.says)
			}
			if install.Status.Correction != nil || len(recorder.Events) > 0 {
				t.Errorf("it says that something was put back: %+v", install.Status.Correction)
			}
			if len(install.Finalizers) == 0 {
				t.Error("its finalizer is gone")
			}
		})
	}
}

// TestAFreezeThatIsNotKnownYet: nothing is done before the agent has looked.
func TestAFreezeThatIsNotKnownYet(t *testing.T) {
	engine := &fakeEngine{}
	r := &Reconciler[struct{}, string]{Engine: engine, Freeze: func(context.Context) (*v1alpha1.FleetFreeze, error) {
		return nil, engines.ErrNotReady
	}}
	install := &v1alpha1.OperatorInstall{}
	install.Spec.Admission = admission.DeepCopy()
	result, err := r.Reconcile(t.Context(), install)
	if err != nil || result.RequeueAfter == 0 || len(engine.applied) > 0 || len(install.Status.Conditions) > 0 {
		t.Errorf("%+v, %v, %v, %+v", result, err, engine.applied, install.Status)
	}
	r.Freeze = func(context.Context) (*v1alpha1.FleetFreeze, error) { return nil, errors.New("forbidden") }
	r.Veto = func(context.Context) (*v1alpha1.ClusterVeto, error) { return nil, nil }
	result, err = r.Reconcile(t.Context(), install)
	ready := conditions.Get(install.Status.Conditions, v1alpha1.ConditionReady)
	if err != nil || result.RequeueAfter == 0 || len(engine.applied) > 0 || ready.Reason != v1alpha1.ReasonFrozen ||
		!strings.Contains(ready.Message, "forbidden") {
		t.Errorf("%+v, %v, %v, %+v", result, err, engine.applied, ready)
	}
	r.Hub, r.Now, install.Finalizers = fake.NewFakeClient(), time.Now, []string{v1alpha1.FinalizerAgent}
	r.ReadKept = func(context.Context, v1alpha1.OperatorReference) (*engines.Kept, error) { return begun, nil }
	engine.report.Complete = true
	_, err = r.Reconcile(t.Context(), install)
	ready = conditions.Get(install.Status.Conditions, v1alpha1.ConditionReady)
	if err != nil || !slices.Equal(engine.applied, []string{"serve"}) || ready.Reason != v1alpha1.ReasonSucceeded {
		t.Errorf("what runs: %v, %v, %+v", err, engine.applied, ready)
	}
}

// TestWhatHasBegunStaysBegun verifies that a veto does not stop an installation that has begun,
// while the engine replaces the object that stores the admission.
func TestWhatHasBegunStaysBegun(t *testing.T) {
	engine := &fakeEngine{}
	kept := begun
	r := &Reconciler[struct{}, string]{Hub: fake.NewFakeClient(), Engine: engine, Now: time.Now,
		Veto:     func(context.Context) (*v1alpha1.ClusterVeto, error) { return refused, nil },
		ReadKept: func(context.Context, v1alpha1.OperatorReference) (*engines.Kept, error) { return kept, nil }}
	install := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{UID: "u",
		Finalizers: []string{v1alpha1.FinalizerAgent}}}
	install.Spec.Admission = admission.DeepCopy()
	for _, test := range []struct {
		kept     *engines.Kept
		revision int64
		applies  bool
	}{{nil, 2, false}, {begun, 2, true}, {nil, 2, true}, {nil, 3, false}} {
		kept, install.Spec.Admission.Revision, engine.applied = test.kept, test.revision, nil
		if _, err := r.Reconcile(t.Context(), install); err != nil {
			t.Fatal(err)
		}
		if applies := len(engine.applied) > 0; applies != test.applies {
			t.Errorf("kept %t, revision %d: acts %t", test.kept != nil, test.revision, applies)
		}
	}
}

// TestAFreezeKeepsWhatNeedsAPerson verifies that a problem for a person stays in the status
// during a freeze. Otherwise other clusters of the wave would continue.
func TestAFreezeKeepsWhatNeedsAPerson(t *testing.T) {
	for _, was := range []bool{true, false} {
		install := &v1alpha1.OperatorInstall{}
		install.Spec.Admission = admission.DeepCopy()
		conditions.Set(&install.Status.Conditions, 1, v1alpha1.ConditionStalled, was, "UninstallFailed", "")
		r := &Reconciler[struct{}, string]{Engine: &fakeEngine{},
			Freeze: func(context.Context) (*v1alpha1.FleetFreeze, error) { return stop, nil },
			Veto:   func(context.Context) (*v1alpha1.ClusterVeto, error) { return nil, nil }}
		if _, err := r.Reconcile(t.Context(), install); err != nil {
			t.Fatal(err)
		}
		if is := conditions.IsTrue(install.Status.Conditions, v1alpha1.ConditionStalled); is != was {
			t.Errorf("Stalled was %t and is %t", was, is)
		}
	}
}

// TestGivenBackBeforeItIsRecovered has a restored hub that removes an operator before it has the
// cluster's admission again. The agent keeps the OperatorInstall until it has released the
// adopted objects, according to the record on the cluster.
func TestGivenBackBeforeItIsRecovered(t *testing.T) {
	for policy, want := range map[v1alpha1.RemovalPolicy]*v1alpha1.Admission{
		v1alpha1.RemovalRestore: &admission, v1alpha1.RemovalUninstall: nil, v1alpha1.RemovalOrphan: nil} {
		t.Run(string(policy), func(t *testing.T) {
			install := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "echo"}}
			install.Spec.RemovalPolicy = policy
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			hub := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(install).WithObjects(install).
				Build()
			engine := &fakeEngine{}
			r := &Reconciler[struct{}, string]{Hub: hub, Engine: engine, Now: time.Now,
				ReadKept: func(context.Context, v1alpha1.OperatorReference) (*engines.Kept, error) {
					return begun, nil
				}}
			reconcile := func() {
				t.Helper()
				if err := hub.Get(t.Context(), client.ObjectKeyFromObject(install), install); err != nil {
					t.Fatal(err)
				}
				if _, err := r.Reconcile(t.Context(), install); err != nil {
					t.Fatal(err)
				}
			}
			reconcile()
			if len(engine.applied) > 0 {
				t.Errorf("acts on what is not admitted: %v", engine.applied)
			}
			if err := hub.Delete(t.Context(), install); err != nil {
				t.Fatal(err)
			}
			reconcile()
			if diff := cmp.Diff(want, engine.admission); diff != "" || len(engine.applied) == 0 {
				t.Errorf("acts %t, by this admission (-want +got):\n%s", len(engine.applied) > 0, diff)
			}
		})
	}
}

// unread is an engine that lacks data until the data was read enough times.
type unread struct {
	*fakeEngine
	// read is how often the missing data was read, enough is how often it must be read, and
	// elsewhere is true if the engine does not read it itself.
	read, enough int
	elsewhere    bool
}

func (e *unread) Plan(install *v1alpha1.OperatorInstall, o struct{}, now time.Time) engines.Plan[string] {
	switch {
	case e.read >= e.enough:
		return e.fakeEngine.Plan(install, o, now)
	case e.elsewhere:
		return engines.Plan[string]{NotReady: true, Report: engines.Report{Complete: true}}
	}
	return engines.Plan[string]{NotReady: true, Actions: []string{"read"}, Report: engines.Report{Complete: true}}
}

func (e *unread) Apply(ctx context.Context, install *v1alpha1.OperatorInstall, o struct{}, actions []string) error {
	if slices.Equal(actions, []string{"read"}) {
		e.read++
		return nil
	}
	return e.fakeEngine.Apply(ctx, install, o, actions)
}

// TestWhatIsNotReadyIsNotReported verifies that the data which the engine lacks is read in the
// same reconcile. Until the data is available, nothing is done and nothing is reported.
func TestWhatIsNotReadyIsNotReported(t *testing.T) {
	for name, test := range map[string]struct {
		engine unread
		acts   bool
		fails  bool
	}{
		"nothing is missing":    {engine: unread{}, acts: true},
		"one thing is missing":  {engine: unread{enough: 1}, acts: true},
		"one after the other":   {engine: unread{enough: 3}, acts: true},
		"it is read elsewhere":  {engine: unread{enough: 1, elsewhere: true}},
		"there is never enough": {engine: unread{enough: 1000}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			engine := &test.engine
			engine.fakeEngine = &fakeEngine{}
			r := &Reconciler[struct{}, string]{Hub: fake.NewFakeClient(), Engine: engine, Now: time.Now,
				Veto: func(context.Context) (*v1alpha1.ClusterVeto, error) { return nil, nil }}
			install := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{
				Finalizers: []string{v1alpha1.FinalizerAgent}}}
			install.Spec.Admission = admission.DeepCopy()
			result, err := r.Reconcile(t.Context(), install)
			reports := len(install.Status.Conditions) > 0
			if (err != nil) != test.fails || len(engine.applied) > 0 != test.acts || reports != test.acts ||
				!test.acts && !test.fails && result.RequeueAfter != notReadyDelay {
				t.Errorf("%+v, %v, applied %v, status %+v", result, err, engine.applied, install.Status)
			}
		})
	}
}
