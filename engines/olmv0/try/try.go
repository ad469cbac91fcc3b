// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package try installs a bundle through OLM v0 on a cluster for a short time: it
// creates a namespace and what OLM needs in it, has OLM install the bundle, or an
// older one and then the upgrade to it, creates the bundle's examples, reports what
// became ready, and removes everything that came with it.
//
// It does not touch what was on the cluster before. What it creates outside of its
// namespace is written down in an annotation of the namespace before it is created,
// so that it can be removed later, also by another process.
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

// Errors of Run and Remove wrap one of these, or are those of the cluster's API.
var (
	// ErrConflict says that something is on the cluster that a trial would change.
	ErrConflict = errors.New("the cluster already has part of this operator")
	// ErrNoOLM says that the cluster has no OLM v0.
	ErrNoOLM = errors.New("the cluster does not serve the API of OLM v0 (operators.coreos.com/v1alpha1)")
	// ErrCatalog says that OLM cannot read the catalog of the trial.
	ErrCatalog = errors.New("OLM cannot read the catalog")
	// ErrNotTried says that a namespace was not made by Run.
	ErrNotTried = errors.New("the namespace was not created by a trial")
	// ErrLeft says that some of what a trial made is still there.
	ErrLeft = errors.New("not everything was removed")

	// errBundle says that the bundle did not work. Run reports it in the Report.
	errBundle = errors.New("bundle failed")
)

const (
	// LabelTry is on every namespace that a trial made. Its value is the package.
	LabelTry = "bellwether.dev/try"
	// annotationMade is on the same namespace and holds a record.
	annotationMade = "bellwether.dev/try-made"
	// labelStub is on the pods of a testbed that run nothing.
	labelStub = "testbed.bellwether.dev/stub"

	fieldOwner = client.FieldOwner("bellwether-try")

	pollInterval = 300 * time.Millisecond
	// catalogLimit bounds how long OLM may take to read the catalog: it takes a second.
	catalogLimit = time.Minute
	// resolveLimit is how long OLM may say that it cannot resolve: it repeats itself, and
	// its caches lag behind.
	resolveLimit = 30 * time.Second
	// statusGrace is how long an example may be without a status.
	statusGrace = time.Minute
	// finalizerLimit is how long the operator may take to finish deleted custom resources.
	finalizerLimit = time.Minute
)

// Options say what is tried, and how.
type Options struct {
	// Config reaches the cluster, with the rights of a cluster administrator.
	Config *rest.Config
	// Bundle is tried; From, if set, is installed first.
	Bundle Release
	From   *Release
	// Catalog is where OLM gets the bundles.
	Catalog Catalog
	// Mode is the install mode; empty means the first that the bundles support of
	// OwnNamespace, SingleNamespace, AllNamespaces and MultiNamespace.
	Mode operatorsv1alpha1.InstallModeType
	// AllowExisting tries the bundle although part of the operator is on the cluster. What
	// is there is changed as the bundle says, and is not removed.
	AllowExisting bool
	// Keep leaves everything on the cluster, unless the trial is interrupted.
	Keep bool
	// Timeout bounds each step.
	Timeout time.Duration
	// Progress is called after each step; it may be nil.
	Progress func(Step)
	// Now is the clock.
	Now func() time.Time
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorsv1.AddToScheme,
		operatorsv1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		utilruntime.Must(add(s))
	}
	return s
}

// trial is one run.
type trial struct {
	Options
	client.Client
	scheme *runtime.Scheme
	pods   kubernetes.Interface

	namespace string
	made      record
	report    *Report
}

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
	if t.pods, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return t, nil
}

// Run tries a bundle. The report is never nil, and says what was found up to the
// error. A bundle that does not work is no error: Report.Problems says so. What was
// made is removed also after an error, and after ctx has ended.
func Run(ctx context.Context, o Options) (*Report, error) {
	t, err := newTrial(o)
	if err != nil {
		return &Report{}, err
	}
	t.report.describe(o)
	err = t.try(ctx)
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
	return t.report, errors.Join(err, t.step("remove", func() (string, error) {
		notes, err := t.remove(context.WithoutCancel(ctx))
		t.report.Problems = append(t.report.Problems, notes...)
		return "removed everything that the trial made", err
	}))
}

// stage is one step of a trial.
type stage struct {
	name string
	do   func(ctx context.Context) (string, error)
}

// try does everything but the removal.
func (t *trial) try(ctx context.Context) error {
	stages := []stage{{"check", t.check}, {"prepare", t.prepare}, {"catalog", t.serve}}
	for i, r := range t.releases() {
		name := "install"
		if i > 0 {
			name = "upgrade"
		}
		stages = append(stages,
			stage{name, func(ctx context.Context) (string, error) { return t.install(ctx, r) }},
			stage{"examples", func(ctx context.Context) (string, error) { return t.createExamples(ctx, r) }})
	}
	stages = append(stages, stage{"pods", t.lookAtPods}, stage{"ready", t.awaitExamples},
		stage{"permissions", t.checkPermissions}, stage{"denials", t.findDenials})
	for _, s := range stages {
		if err := t.step(s.name, func() (string, error) { return s.do(ctx) }); err != nil {
			return err
		}
	}
	t.report.Complete = true
	return nil
}

// step does one step, and tells of it. A failure of the bundle is added to the
// problems. A step that found a problem did not pass.
func (t *trial) step(name string, do func() (string, error)) error {
	begun, known := t.Now(), len(t.report.Problems)
	message, err := do()
	s := Step{Name: name, Passed: err == nil && len(t.report.Problems) == known, Message: message,
		Seconds: t.Now().Sub(begun).Round(time.Second).Seconds()}
	if err != nil {
		s.Message = sentence(err)
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

// poll asks again until done, until an error that asking again will not mend, or until
// a timeout, whose error wraps context.DeadlineExceeded.
func (t *trial) poll(ctx context.Context, limit time.Duration, done func(ctx context.Context) (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, limit, true, func(ctx context.Context) (bool, error) {
		ok, err := done(ctx)
		if ctx.Err() != nil || isTransient(err) {
			ok, err = false, nil
		}
		return ok, err
	})
}

// isTransient tells whether a request may succeed if it is made again.
func isTransient(err error) bool {
	var unreachable *url.Error
	return errors.As(err, &unreachable) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err)
}
