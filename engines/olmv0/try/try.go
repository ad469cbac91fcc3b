// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package try installs a bundle through OLM v0 on a cluster for a short time. It creates a namespace with OLM's
// objects and makes OLM install the bundle, or an older bundle and then the upgrade. It creates the bundle's
// examples, reports which objects became ready, and removes everything that it created.
//
// It does not change objects that existed before. Before it creates objects outside its namespace, it records them in
// an annotation of the namespace, so that another process can also remove them later.
package try

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Errors of Run and Remove wrap one of these errors, or are errors of the cluster's API.
var (
	// ErrConflict means that the cluster has objects that a trial would change.
	ErrConflict = errors.New("the cluster already has part of this operator")
	// ErrNoOLM means that the cluster has no OLM v0.
	ErrNoOLM = errors.New("the cluster does not serve the API of OLM v0 (operators.coreos.com/v1alpha1)")
	// ErrCatalog means that OLM cannot read the catalog of the trial.
	ErrCatalog = errors.New("OLM cannot read the catalog")
	// ErrNotTried means that Run did not create a namespace.
	ErrNotTried = errors.New("the namespace was not created by a trial")
	// ErrNotRemoved means that some objects of a trial still exist.
	ErrNotRemoved = errors.New("not everything was removed")

	// errBundle means that the bundle does not work. Run reports it in the Report.
	errBundle = errors.New("bundle failed")
)

const (
	// LabelTry is the label on every namespace of a trial. Its value is the package.
	LabelTry = "bellwether.dev/try"
	// annotationRecord is the annotation on the same namespace with the record of the trial.
	annotationRecord = "bellwether.dev/try-made"
	// labelStub is the label on pods of a testbed that run no program.
	labelStub = "testbed.bellwether.dev/stub"

	fieldOwner = client.FieldOwner("bellwether-try")

	pollInterval = 300 * time.Millisecond
	// catalogLimit limits the time in which OLM must read the catalog. It normally takes a second.
	catalogLimit = time.Minute
	// resolveLimit is how long OLM may report that it cannot resolve. OLM may report an old failure again, because
	// its caches are updated late.
	resolveLimit = 30 * time.Second
	// statusGrace is how long an example may have no status.
	statusGrace = time.Minute
	// finalizerLimit is how long the operator may take to finish deleted custom resources.
	finalizerLimit = time.Minute
	// settleTime is how long OLM must have made nothing after its objects were removed.
	settleTime = 3 * time.Second
	// componentsLimit is how long OLM may take to notice that the components of an operator were deleted.
	componentsLimit = time.Minute
)

// Options are the input of a trial.
type Options struct {
	// Config connects to the cluster, with the permissions of a cluster administrator.
	Config *rest.Config
	// Bundle is the bundle to try. From, if set, is installed first.
	Bundle Release
	From   *Release
	// Catalog is the source of the bundles for OLM.
	Catalog Catalog
	// Mode is the install mode; empty means the first mode that the bundles support, in the order OwnNamespace,
	// SingleNamespace, AllNamespaces, MultiNamespace.
	Mode operatorsv1alpha1.InstallModeType
	// AllowExisting tries the bundle although part of the operator is on the cluster. OLM changes the existing
	// objects as the bundle requires, and they are not removed.
	AllowExisting bool
	// Keep leaves everything on the cluster, unless the trial is interrupted.
	Keep bool
	// Timeout limits the time of each step.
	Timeout time.Duration
	// Progress is called after each step; it may be nil.
	Progress func(Step)
	// Now is the clock.
	Now func() time.Time
}

// newScheme returns a scheme with the kinds that a trial uses.
func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorsv1.AddToScheme,
		operatorsv1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		utilruntime.Must(add(s))
	}
	return s
}

// trial is one trial of a bundle.
type trial struct {
	Options
	client.Client
	scheme *runtime.Scheme
	kube   kubernetes.Interface

	namespace string
	record    record
	report    *Report
}

// newTrial connects to the cluster.
func newTrial(o Options) (*trial, error) {
	t := &trial{Options: o, scheme: newScheme(), report: &Report{}}
	// The API server limits a trial, not its client: near the deadline of a step, a client's limit is an error that
	// hides why the step did not end.
	config := rest.CopyConfig(o.Config)
	config.QPS, config.RateLimiter = -1, nil
	var err error
	if t.Client, err = client.New(config, client.Options{Scheme: t.scheme}); err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	if t.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return t, nil
}

// Run tries a bundle. The report is never nil; after an error, it has the results until then. A bundle that does not
// work is not an error but a problem in Report.Problems. Run removes everything that it created, even after an error
// and after the end of ctx, unless Options.Keep is set and ctx has not ended.
func Run(ctx context.Context, o Options) (*Report, error) {
	t, err := newTrial(o)
	if err != nil {
		return &Report{}, err
	}
	t.report.setBundles(o)
	err = t.runStages(ctx)
	if errors.Is(err, errBundle) {
		err = nil
	}
	switch {
	case t.namespace == "":
		return t.report, err
	case o.Keep && ctx.Err() == nil:
		t.report.Kept = true
		return t.report, err
	}
	return t.report, errors.Join(err, t.runStep("remove", func() (string, error) {
		notes, err := t.removeAll(context.WithoutCancel(ctx))
		t.report.Problems = append(t.report.Problems, notes...)
		return "removed everything that the trial made", err
	}))
}

// stage is one step of a trial.
type stage struct {
	name string
	run  func(ctx context.Context) (string, error)
}

// runStages carries out all steps except for the removal, and stops at the first error. The steps install and examples
// run once for each bundle.
func (t *trial) runStages(ctx context.Context) error {
	stages := []stage{{"check", t.checkCluster}, {"prepare", t.prepare}, {"catalog", t.serveCatalog}}
	for i, r := range t.listReleases() {
		name := "install"
		if i > 0 {
			name = "upgrade"
		}
		stages = append(stages,
			stage{name, func(ctx context.Context) (string, error) { return t.installBundle(ctx, r) }},
			stage{"examples", func(ctx context.Context) (string, error) { return t.createExamples(ctx, r) }})
	}
	stages = append(stages, stage{"pods", t.countPods}, stage{"ready", t.awaitExamples},
		stage{"permissions", t.checkPermissions}, stage{"denials", t.findDenials})
	for _, s := range stages {
		if err := t.runStep(s.name, func() (string, error) { return s.run(ctx) }); err != nil {
			return err
		}
	}
	t.report.Complete = true
	return nil
}

// runStep carries out one step, reports it and returns its error. A failure of the bundle (errBundle) becomes a
// problem of the report. Any other error stops the trial (Step.Stopped). A step that adds a problem does not pass.
func (t *trial) runStep(name string, do func() (string, error)) error {
	start, problemsBefore := t.Now(), len(t.report.Problems)
	message, err := do()
	s := Step{Name: name, Passed: err == nil && len(t.report.Problems) == problemsBefore, Message: message,
		Seconds: t.Now().Sub(start).Round(time.Second).Seconds()}
	if err != nil {
		s.Message = formatError(err)
	}
	if errors.Is(err, errBundle) {
		t.report.Problems = append(t.report.Problems, s.Message)
	}
	s.Stopped = err != nil && !errors.Is(err, errBundle)
	t.report.Steps = append(t.report.Steps, s)
	if t.Progress != nil {
		t.Progress(s)
	}
	return err
}

// poll calls done until it returns true, returns an error that is not transient, or the time limit ends. The error
// after the time limit wraps context.DeadlineExceeded.
func (t *trial) poll(ctx context.Context, limit time.Duration, done func(ctx context.Context) (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, limit, true, func(ctx context.Context) (bool, error) {
		ok, err := done(ctx)
		if ctx.Err() != nil || isTransient(err) { // at the limit, a request fails only because ctx has ended
			ok, err = false, nil
		}
		return ok, err
	})
}

// isTransient reports whether a failed request may succeed if it is repeated.
func isTransient(err error) bool {
	var unreachable *url.Error
	return errors.As(err, &unreachable) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err)
}
