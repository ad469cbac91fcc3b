// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// operator is what OLM holds for one operator on a hollow cluster, and what OLM does by itself: it connects to the
// catalog view, makes an InstallPlan for what the view offers, and installs what was approved. It is as simple as the
// agent's decisions permit: OLM's own mistakes (docs/olm.md) are not simulated.
type operator struct {
	behaviour Behaviour
	cluster   string
	now       func() time.Time
	// changed is called after OLM did something, as a watch would report it.
	changed func()
	// ended is called when an installation has ended.
	ended func(Installation)

	mu sync.Mutex
	// begun says that what others have installed before is there.
	begun bool
	view  plan.View
	next  string // what the view offers; empty for nothing
	state plan.Cluster
	// step that OLM is at; empty while it has nothing to do.
	step   string
	serial int
	// versions of the package's bundles.
	versions map[string]string
	// kept is the admission that the agent acted on last, which a real one writes into the Subscription.
	kept *v1alpha1.KeptAdmission
}

// viewAddress stands for the port of an agent that serves the view.
const viewAddress = "127.0.0.1:50100"

// seen is what an agent observes: a copy, since OLM goes on.
func (o *operator) seen() (plan.View, plan.Cluster) {
	o.mu.Lock()
	defer o.mu.Unlock()
	state := o.state
	state.OLM = true
	state.OperatorGroups = slices.Clone(o.state.OperatorGroups)
	state.Subscriptions = slices.Clone(o.state.Subscriptions)
	state.InstallPlans = slices.Clone(o.state.InstallPlans)
	state.CSVs = slices.Clone(o.state.CSVs)
	state.Deployments = slices.Clone(o.state.Deployments)
	if o.state.CatalogSource != nil {
		source := *o.state.CatalogSource
		state.CatalogSource = &source
	}
	return o.view, state
}

// apply carries out an action of the agent.
func (o *operator) apply(install *v1alpha1.OperatorInstall, offer plan.Offer, a plan.Action) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.versions = offer.Versions
	if admission := install.Spec.Admission; admission != nil {
		o.kept = &v1alpha1.KeptAdmission{Admission: *admission.DeepCopy(), Holds: install.Spec.Holds}
		o.kept.Admission.Recovered = false // that says something about a hub, not about the cluster
	}
	switch a.Verb {
	case plan.Serve:
		o.view, o.next = plan.View{Hash: offer.ViewHash, Address: viewAddress}, offer.Next
	case plan.StopServing:
		o.view, o.next = plan.View{}, ""
	case plan.Apply:
		o.make(install.Spec.Admission.Release, a.Kind)
	case plan.Delete:
		o.remove(a)
	case plan.Keep:
		o.state.Namespace.Kept = true
	default:
		o.change(install, a)
	}
	o.react()
}

// keeps returns what the cluster keeps of the operator; nil where that is nothing.
func (o *operator) keeps() *engines.Kept {
	o.mu.Lock()
	defer o.mu.Unlock()
	sub := o.subscription()
	if sub == nil || o.kept == nil {
		return nil
	}
	kept := &engines.Kept{KeptAdmission: *o.kept.DeepCopy()}
	if name := sub.InstalledCSV; name != "" {
		kept.Installed = &v1alpha1.InstalledVersion{Bundle: name, Version: o.versions[name]}
	}
	return kept
}

// make applies an object of the agent's templates.
func (o *operator) make(release v1alpha1.Release, kind string) {
	switch kind {
	case plan.KindNamespace:
		o.state.Namespace = plan.Namespace{Object: o.object(), Exists: true, Managed: true, InSync: true}
	case plan.KindOperatorGroup:
		o.state.OperatorGroups = []plan.OperatorGroup{{Object: o.object(), Name: release.Package, Managed: true,
			InSync: true}}
	case plan.KindCatalogSource:
		o.state.CatalogSource = &plan.CatalogSource{Object: o.object(), Name: release.Package, Managed: true,
			InSync: true, Address: viewAddress}
	case plan.KindSubscription:
		if sub := o.subscription(); sub != nil && sub.IsOwn {
			sub.InSync, sub.AwaitsView = true, false
		}
		if len(o.state.Subscriptions) == 0 {
			o.state.Subscriptions = []plan.Subscription{{Object: o.object(), Name: release.Package,
				Package: release.Package, IsOwn: true, InSync: true}}
		}
	}
}

func (o *operator) object() plan.Object {
	o.serial++
	return plan.Object{UID: types.UID(strconv.Itoa(o.serial)), ResourceVersion: "1"}
}

func (o *operator) remove(a plan.Action) {
	switch a.Kind {
	case plan.KindNamespace:
		o.state.Namespace = plan.Namespace{}
	case plan.KindOperatorGroup:
		o.state.OperatorGroups = nil
	case plan.KindCatalogSource:
		o.state.CatalogSource = nil
	case plan.KindSubscription:
		o.state.Subscriptions = nil
	case plan.KindInstallPlan:
		o.state.InstallPlans = slices.DeleteFunc(o.state.InstallPlans,
			func(p plan.InstallPlan) bool { return p.Name == a.Name })
		if sub := o.subscription(); sub != nil && sub.Awaits == a.Name {
			sub.Awaits = ""
		}
	case plan.KindCSV:
		o.state.CSVs = slices.DeleteFunc(o.state.CSVs, func(c plan.CSV) bool { return c.Name == a.Name })
	}
}

// change does what the agent patches in objects of OLM.
func (o *operator) change(install *v1alpha1.OperatorInstall, a plan.Action) {
	switch a.Verb {
	case plan.Approve:
		o.approve(a.Name, install.Spec.Admission.Revision)
	case plan.Retry:
		if p := o.plan(a.Name); p != nil {
			p.Phase = string(operatorsv1alpha1.InstallPlanPhaseInstalling)
		}
	case plan.Redo:
		if p := o.plan(a.Name); p != nil {
			p.Completed = o.now()
		}
	case plan.Abandon:
		o.enter(a.Name, operatorsv1alpha1.CSVPhaseFailed)
	case plan.Reprocess:
		o.enter(a.Name, operatorsv1alpha1.CSVPhaseInstalling)
	case plan.SetReplacing:
		o.enter(a.Name, operatorsv1alpha1.CSVPhaseReplacing)
	case plan.TakeOver:
		if sub := o.subscription(); sub != nil {
			sub.IsOwn, sub.Keeps, sub.AwaitsView = true, true, true
			sub.Adopted = &v1alpha1.AdoptedSubscription{Name: sub.Name, Since: metav1.NewTime(o.now()),
				Bundle: sub.InstalledCSV}
		}
	case plan.GiveBack:
		if sub := o.subscription(); sub != nil {
			sub.IsOwn, sub.Keeps, sub.AwaitsView, sub.InSync, sub.Adopted = false, false, false, false, nil
		}
	case plan.Adopt:
		if sub := o.subscription(); sub != nil {
			sub.CurrentCSV, sub.InstalledCSV, sub.LastUpdated = a.Value, a.Value, o.now()
		}
	case plan.Reset:
		if sub := o.subscription(); sub != nil {
			sub.CurrentCSV, sub.Awaits, sub.LastUpdated = a.Value, "", o.now()
		}
	}
}

// approve has OLM carry an InstallPlan out. Where a step of it is to fail, no CSV is made.
func (o *operator) approve(name string, revision int64) {
	p := o.plan(name)
	if p == nil {
		return
	}
	p.Approved, p.Revision, p.Phase = true, revision, string(operatorsv1alpha1.InstallPlanPhaseInstalling)
	bundle := p.CSVs[0]
	if o.behaviour.Of(o.cluster, bundle).Fails {
		return
	}
	p.Phase = string(operatorsv1alpha1.InstallPlanPhaseComplete)
	sub := o.subscription()
	if sub == nil {
		return
	}
	replaced := sub.InstalledCSV
	o.enter(replaced, operatorsv1alpha1.CSVPhaseReplacing)
	o.state.CSVs = append(o.state.CSVs, plan.CSV{Object: o.object(), Name: bundle, Version: o.versions[bundle],
		Phase: string(operatorsv1alpha1.CSVPhaseInstalling), Reason: "InstallWaiting",
		Message:  "installing: waiting for deployment operator to become ready",
		Replaces: replaced, Created: o.now(), Since: o.now(), IsOfPackage: true})
	sub.CurrentCSV, sub.InstalledCSV, sub.Awaits, sub.LastUpdated = bundle, bundle, "", o.now()
	o.state.Deployments = []plan.Deployment{{Object: o.object(), Name: "operator", Replicas: 1, Configured: true}}
}

func (o *operator) enter(csv string, phase operatorsv1alpha1.ClusterServiceVersionPhase) {
	for i := range o.state.CSVs {
		if c := &o.state.CSVs[i]; c.Name == csv {
			c.Phase, c.Reason, c.Message, c.Since = string(phase), "", "", o.now()
		}
	}
}

// react begins the next step of OLM, if there is one. A step that is under way is left alone, unless what it was about
// has changed.
func (o *operator) react() {
	step, bundle := o.due()
	if step == o.step {
		return
	}
	o.step = step
	if step == "" {
		return
	}
	drawn := o.behaviour.Of(o.cluster, bundle)
	kind, _, _ := strings.Cut(step, " ")
	delay := map[string]time.Duration{connecting: drawn.Connect, resolving: drawn.Resolve,
		installing: drawn.Install, failing: drawn.Install}[kind]
	time.AfterFunc(delay, func() { o.finish(step, drawn) })
}

// The steps of OLM; each is followed by what it is about.
const (
	connecting = "connecting"
	resolving  = "resolving"
	installing = "installing"
	failing    = "failing"
)

// due returns what OLM does next, and the bundle that it is about.
func (o *operator) due() (step, bundle string) {
	source, sub := o.state.CatalogSource, o.subscription()
	for _, p := range o.state.InstallPlans {
		if p.Phase == string(operatorsv1alpha1.InstallPlanPhaseInstalling) {
			return failing + " " + p.Name, p.CSVs[0]
		}
	}
	for _, c := range o.state.CSVs {
		if c.Phase == string(operatorsv1alpha1.CSVPhaseInstalling) {
			return installing + " " + c.Name, c.Name
		}
	}
	switch {
	case source == nil:
		return "", ""
	case source.State != plan.ConnectionReady:
		return connecting + " " + source.Address, o.next
	case sub == nil, o.next == "", sub.Awaits != "", sub.CurrentCSV == o.next:
		return "", ""
	}
	return resolving + " " + o.next, o.next
}

// finish ends a step, unless OLM does something else by now.
func (o *operator) finish(step string, drawn Installation) {
	o.mu.Lock()
	if o.step != step {
		o.mu.Unlock()
		return
	}
	o.step = ""
	kind, about, _ := strings.Cut(step, " ")
	switch kind {
	case connecting:
		o.state.CatalogSource.State = plan.ConnectionReady
	case resolving:
		o.resolve(about)
	case installing:
		o.succeed(about)
	case failing:
		o.fail(about)
	}
	o.react()
	ended, changed := o.ended, o.changed
	o.mu.Unlock()
	if kind == installing || kind == failing {
		ended(drawn)
	}
	changed()
}

// resolve makes an InstallPlan that waits for approval.
func (o *operator) resolve(bundle string) {
	o.serial++
	name := "install-" + digest(o.cluster, bundle, strconv.Itoa(o.serial))[:5]
	o.state.InstallPlans = append(o.state.InstallPlans, plan.InstallPlan{Object: o.object(), Name: name, Compared: true,
		Phase: string(operatorsv1alpha1.InstallPlanPhaseRequiresApproval), CSVs: []string{bundle}, Created: o.now()})
	if n := len(o.state.InstallPlans); n > keptPlans {
		o.state.InstallPlans = o.state.InstallPlans[n-keptPlans:]
	}
	sub := o.subscription()
	sub.CurrentCSV, sub.Awaits, sub.LastUpdated = bundle, name, o.now()
}

// keptPlans is how many InstallPlans of an operator are kept; OLM keeps five.
const keptPlans = 5

func (o *operator) succeed(bundle string) {
	o.state.CSVs = slices.DeleteFunc(o.state.CSVs, func(c plan.CSV) bool { return c.Name != bundle })
	o.enter(bundle, operatorsv1alpha1.CSVPhaseSucceeded)
	for i := range o.state.CSVs {
		o.state.CSVs[i].Reason = string(operatorsv1alpha1.CSVReasonInstallSuccessful)
		o.state.CSVs[i].Message = "install strategy completed with no errors"
	}
}

func (o *operator) fail(name string) {
	if p := o.plan(name); p != nil {
		p.Phase, p.FailedAt = string(operatorsv1alpha1.InstallPlanPhaseFailed), o.now()
		p.Failure = "at the step CustomResourceDefinition of " + p.CSVs[0] + ": the simulation lets it fail"
	}
}

func (o *operator) subscription() *plan.Subscription {
	if len(o.state.Subscriptions) == 0 {
		return nil
	}
	return &o.state.Subscriptions[0]
}

func (o *operator) plan(name string) *plan.InstallPlan {
	for i := range o.state.InstallPlans {
		if o.state.InstallPlans[i].Name == name {
			return &o.state.InstallPlans[i]
		}
	}
	return nil
}

// digest is a short text that differs for different words.
func digest(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return hex.EncodeToString(sum[:])
}
