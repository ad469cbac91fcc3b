// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/vitals/plan"
)

// Bounds of counting.
const (
	// maxKinds limits the kinds that are counted for one operator.
	maxKinds = 30
	// maxOperands limits the resources that are counted for one kind: the first
	// by namespace and name.
	maxOperands = 5000
	// pageSize is how many resources are listed in one request. The agent holds
	// one of them in memory at a time.
	pageSize = 250
	// listTimeout bounds how long listing one kind may take.
	listTimeout = 30 * time.Second
	// keepCounts is how long counts are kept after counting has failed.
	keepCounts = 5 * time.Minute
)

// operandCount is the count of one kind of an operator's custom resources.
type operandCount struct {
	kind string
	// ready counts by values of series.Ready, as of at; at is zero if there are
	// no counts.
	ready map[string]int
	at    time.Time
	// total is how many there are, young ones included.
	total int
	// uncounted is a value of series.Reason; empty if all were counted.
	uncounted string
}

// operandLister streams the custom resources of a kind.
type operandLister interface {
	// list calls see with each resource until it returns false. It returns how
	// many resources there are if see returned true for the first page, and
	// errNoKind if the cluster does not serve the kind.
	list(ctx context.Context, kind schema.GroupVersionKind, namespace string,
		see func(*plan.Operand) bool) (total int, err error)
}

// errNoKind says that a cluster does not serve a kind.
var errNoKind = errors.New("kind is not served")

// operandCounter counts the custom resources of all operators, and observes
// their pods, periodically. It is a manager.Runnable.
type operandCounter struct {
	reader     *reader
	visibility func() Visibility
	lister     operandLister
	pods       *podObserver
	interval   time.Duration
	now        func() time.Time

	mu sync.Mutex
	// known is by OperatorInstall and kind.
	known map[string]map[string]operandCount
}

// Start counts immediately and then at each interval until ctx ends. A round
// that takes longer delays the next one.
func (c *operandCounter) Start(ctx context.Context) error {
	for {
		wait := time.Second
		if visible := c.visibility(); visible.Hub && visible.Cluster {
			c.countAll(ctx, visible)
			wait = c.interval
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// countsOf returns the counts of an install's kinds, by name of the kind.
func (c *operandCounter) countsOf(install string) []operandCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.known[install]),
		func(a, b operandCount) int { return cmp.Compare(a.kind, b.kind) })
}

// countAll counts all kinds once. Counts of what no longer exists are dropped.
func (c *operandCounter) countAll(ctx context.Context, visible Visibility) {
	installs, err := c.reader.expected(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot count custom resources")
		return
	}
	next := map[string]map[string]operandCount{}
	for _, oi := range installs {
		observed, err := c.reader.observe(ctx, oi, visible)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot count custom resources", "namespace", oi.Spec.Operator.Namespace,
				"operator", oi.Spec.Operator.Name)
			continue
		}
		c.pods.observe(ctx, observed)
		if observed.csv != nil {
			next[oi.Name] = c.countOperator(ctx, oi, observed.csv)
		}
	}
	c.pods.keep(installs)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = next
}

func (c *operandCounter) countOperator(ctx context.Context, oi *v1alpha1.OperatorInstall,
	csv *operatorsv1alpha1.ClusterServiceVersion) map[string]operandCount {
	namespace := ""
	if oi.Spec.Admission.Release.Install.Mode == v1alpha1.InstallOwnNamespace {
		namespace = csv.Namespace
	}
	found := map[string]operandCount{}
	for _, kind := range ownedKinds(csv) {
		if ctx.Err() != nil {
			break
		}
		result, err := c.countKind(ctx, kind, namespace)
		if errors.Is(err, errNoKind) {
			continue
		}
		if err != nil {
			result = c.countAfterError(oi, kind, err)
		}
		c.logChange(ctx, oi, kind, result.uncounted, err)
		found[kind.Kind] = merge(found[kind.Kind], result)
	}
	return found
}

// countKind counts the resources of one kind.
func (c *operandCounter) countKind(ctx context.Context, kind schema.GroupVersionKind, namespace string) (operandCount,
	error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	result := operandCount{kind: kind.Kind, ready: map[string]int{}, at: c.now()}
	seen := 0
	total, err := c.lister.list(ctx, kind, namespace, func(o *plan.Operand) bool {
		if seen++; seen > maxOperands {
			result.uncounted = series.ReasonTooMany
			return false
		}
		if ready, counts := o.Readiness(result.at); counts {
			result.ready[ready]++
		}
		return true
	})
	result.total = total
	return result, err
}

// countAfterError returns the count of a kind after counting has failed: the
// previous one for a while.
func (c *operandCounter) countAfterError(oi *v1alpha1.OperatorInstall, kind schema.GroupVersionKind,
	err error) operandCount {
	if apierrors.IsForbidden(err) {
		return operandCount{kind: kind.Kind, uncounted: series.ReasonForbidden}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.known[oi.Name][kind.Kind]
	if c.now().Sub(before.at) >= keepCounts {
		before = operandCount{}
	}
	before.kind, before.uncounted = kind.Kind, series.ReasonFailed
	return before
}

// logChange logs when a kind stops or starts being counted.
func (c *operandCounter) logChange(ctx context.Context, oi *v1alpha1.OperatorInstall, kind schema.GroupVersionKind,
	reason string,
	err error) {
	c.mu.Lock()
	before := c.known[oi.Name][kind.Kind].uncounted
	c.mu.Unlock()
	if before == reason {
		return
	}
	log := log.FromContext(ctx).WithValues("namespace", oi.Spec.Operator.Namespace, "operator", oi.Spec.Operator.Name,
		"kind", kind.GroupKind().String())
	switch reason {
	case "":
		log.Info("Custom resources are counted again")
	case series.ReasonForbidden:
		log.Info("Custom resources are not counted: the agent may not list them. Grant it with a ClusterRole " +
			"labelled bellwether.dev/aggregate-to-agent=true")
	case series.ReasonTooMany:
		log.Info("Not all custom resources are counted", "counted", maxOperands)
	default:
		log.Error(err, "Cannot count custom resources; retrying", "every", c.interval)
	}
}

// merge adds up kinds of the same name in several groups.
func merge(a, b operandCount) operandCount {
	if a.kind == "" {
		return b
	}
	sum := operandCount{kind: a.kind, ready: maps.Clone(a.ready), at: a.at, uncounted: cmp.Or(a.uncounted, b.uncounted)}
	if sum.ready == nil {
		sum.ready = map[string]int{}
	}
	if sum.at.IsZero() {
		sum.at = b.at
	}
	sum.total = a.total + b.total
	for ready, n := range b.ready {
		sum.ready[ready] += n
	}
	return sum
}

// ownedKinds returns the kinds that a CSV owns, each once with its highest
// version, in the order of the CSV.
func ownedKinds(csv *operatorsv1alpha1.ClusterServiceVersion) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, crd := range csv.Spec.CustomResourceDefinitions.Owned {
		_, group, _ := strings.Cut(crd.Name, ".")
		kind := schema.GroupVersionKind{Group: group, Version: crd.Version, Kind: crd.Kind}
		i := slices.IndexFunc(kinds, func(k schema.GroupVersionKind) bool { return k.GroupKind() == kind.GroupKind() })
		switch {
		case i < 0:
			kinds = append(kinds, kind)
		case version.CompareKubeAwareVersionStrings(kind.Version, kinds[i].Version) > 0:
			kinds[i] = kind
		}
	}
	return kinds[:min(len(kinds), maxKinds)]
}

// lister lists directly from the API server.
type lister struct {
	client rest.Interface
	mapper meta.RESTMapper
}

func newLister(local cluster.Cluster) (*lister, error) {
	config := rest.CopyConfig(local.GetConfig())
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	c, err := rest.UnversionedRESTClientForConfigAndClient(config, local.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make client for custom resources: %w", err)
	}
	return &lister{client: c, mapper: local.GetRESTMapper()}, nil
}

func (l *lister) list(ctx context.Context, kind schema.GroupVersionKind, namespace string,
	see func(*plan.Operand) bool) (int, error) {
	mapping, err := l.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		return 0, errNoKind
	case err != nil:
		return 0, fmt.Errorf("look up %s: %w", kind.Kind, err)
	}
	path := []string{"apis", kind.Group, kind.Version}
	if namespace != "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		path = append(path, "namespaces", namespace)
	}
	path = append(path, mapping.Resource.Resource)
	total := 0
	for page := (listMeta{}); ; {
		isFirst := page.Continue == ""
		page, err = l.page(ctx, path, page.Continue, func(o *plan.Operand) bool {
			if isFirst {
				total++
			}
			return see(o)
		})
		if err != nil {
			return 0, fmt.Errorf("list %s: %w", mapping.Resource.GroupResource(), err)
		}
		if isFirst {
			total += page.RemainingItemCount
		}
		if page.Continue == "" {
			return total, nil
		}
	}
}

// page streams one page and returns its metadata.
func (l *lister) page(ctx context.Context, path []string, from string,
	see func(*plan.Operand) bool) (listMeta, error) {
	request := l.client.Get().AbsPath(path...).SetHeader("Accept", "application/json").Param("limit",
		strconv.Itoa(pageSize))
	if from != "" {
		request = request.Param("continue", from)
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return listMeta{}, err
	}
	// The connection is closed if the body was not read to its end.
	defer func(body io.Closer) { _ = body.Close() }(body)
	return scanList(body, see)
}
