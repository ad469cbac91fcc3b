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
	"github.com/bellwether-dev/bellwether/alerts/vitals"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Limits of counting.
const (
	// maxKinds limits the kinds that are counted for one operator.
	maxKinds = 30
	// maxOperands limits the resources that are counted for one kind: the first
	// by namespace and name.
	maxOperands = 5000
	// pageSize is how many resources are listed in one request. The agent holds one
	// resource in memory at a time.
	pageSize = 250
	// listTimeout limits the time to list one kind.
	listTimeout = 30 * time.Second
	// countRetention is how long counts are kept after counting has failed.
	countRetention = 5 * time.Minute
)

// operandCount is the count of one kind of an operator's custom resources.
type operandCount struct {
	kind string
	// ready has the counts by value of series.Ready, at the time at. at is
	// zero if there are no counts.
	ready map[string]int
	at    time.Time
	// total is the number of resources, including new resources that ready leaves out.
	total int
	// uncounted is why resources were not counted, a value of series.Reason;
	// empty if all were counted.
	uncounted string
}

// operandLister streams the custom resources of a kind.
type operandLister interface {
	// list calls visit with each resource until visit returns false. total is the number of
	// resources, if visit returned true for the whole first page. The error is errNoKind if the
	// cluster does not serve the kind.
	list(ctx context.Context, kind schema.GroupVersionKind, namespace string,
		visit func(*vitals.Operand) bool) (total int, err error)
}

// errNoKind means that a cluster does not serve a kind.
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
	// counts are the newest counts, by OperatorInstall and kind.
	counts map[string]map[string]operandCount
}

// Start counts immediately and then at each interval until ctx ends. A count that takes longer
// than the interval delays the next count.
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

// listCounts returns the counts of an install, sorted by kind.
func (c *operandCounter) listCounts(install string) []operandCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.counts[install]),
		func(a, b operandCount) int { return cmp.Compare(a.kind, b.kind) })
}

// countAll counts all kinds once. Counts of deleted installs and kinds are removed.
func (c *operandCounter) countAll(ctx context.Context, visible Visibility) {
	installs, err := c.reader.listExpected(ctx)
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
	c.pods.retainExpected(installs)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts = next
}

// countOperator counts the custom resources of one operator and returns the counts by kind.
// Kinds that the cluster does not serve are left out.
func (c *operandCounter) countOperator(ctx context.Context, oi *v1alpha1.OperatorInstall,
	csv *operatorsv1alpha1.ClusterServiceVersion) map[string]operandCount {
	namespace := ""
	if oi.Spec.Admission.Release.Install.Mode == v1alpha1.InstallOwnNamespace {
		namespace = csv.Namespace
	}
	found := map[string]operandCount{}
	for _, kind := range listOwnedKinds(csv) {
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
		found[kind.Kind] = mergeCounts(found[kind.Kind], result)
	}
	return found
}

// countKind counts the resources of one kind, of all namespaces if namespace is empty.
func (c *operandCounter) countKind(ctx context.Context, kind schema.GroupVersionKind, namespace string) (operandCount,
	error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	result := operandCount{kind: kind.Kind, ready: map[string]int{}, at: c.now()}
	visited := 0
	total, err := c.lister.list(ctx, kind, namespace, func(o *vitals.Operand) bool {
		if visited++; visited > maxOperands {
			result.uncounted = series.ReasonTooMany
			return false
		}
		if ready, counts := o.Readiness(result.at); counts { // a new resource does not count yet
			result.ready[ready]++
		}
		return true
	})
	result.total = total
	return result, err
}

// countAfterError returns the count of a kind that could not be counted: the previous
// count if it is not older than countRetention, otherwise an empty count. The result
// has the reason in uncounted.
func (c *operandCounter) countAfterError(oi *v1alpha1.OperatorInstall, kind schema.GroupVersionKind,
	err error) operandCount {
	if apierrors.IsForbidden(err) {
		return operandCount{kind: kind.Kind, uncounted: series.ReasonForbidden}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	previous := c.counts[oi.Name][kind.Kind]
	if c.now().Sub(previous.at) >= countRetention {
		previous = operandCount{}
	}
	previous.kind, previous.uncounted = kind.Kind, series.ReasonFailed
	return previous
}

// logChange logs a change of the reason why a kind is not counted. An empty reason means
// that the kind is counted.
func (c *operandCounter) logChange(ctx context.Context, oi *v1alpha1.OperatorInstall, kind schema.GroupVersionKind,
	reason string,
	err error) {
	c.mu.Lock()
	previousReason := c.counts[oi.Name][kind.Kind].uncounted
	c.mu.Unlock()
	if previousReason == reason {
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

// mergeCounts adds the counts of kinds that have the same name in different groups. The result
// has the time of a, or of b if a has no counts.
func mergeCounts(a, b operandCount) operandCount {
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

// listOwnedKinds returns the kinds that a CSV owns, in the order of the CSV. Each kind is
// returned once, with its highest version.
func listOwnedKinds(csv *operatorsv1alpha1.ClusterServiceVersion) []schema.GroupVersionKind {
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

// lister lists directly from the API server, without a cache.
type lister struct {
	client rest.Interface
	mapper meta.RESTMapper
}

// newLister returns a lister for the local cluster.
func newLister(local cluster.Cluster) (*lister, error) {
	config := rest.CopyConfig(local.GetConfig())
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	c, err := rest.UnversionedRESTClientForConfigAndClient(config, local.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make client for custom resources: %w", err)
	}
	return &lister{client: c, mapper: local.GetRESTMapper()}, nil
}

// list implements operandLister.
func (l *lister) list(ctx context.Context, kind schema.GroupVersionKind, namespace string,
	visit func(*vitals.Operand) bool) (int, error) {
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
		page, err = l.listPage(ctx, path, page.Continue, func(o *vitals.Operand) bool {
			if isFirst {
				total++
			}
			return visit(o)
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

// listPage lists one page, calls visit with each resource and returns the page's metadata. token
// is the continue token; empty for the first page.
func (l *lister) listPage(ctx context.Context, path []string, token string,
	visit func(*vitals.Operand) bool) (listMeta, error) {
	request := l.client.Get().AbsPath(path...).SetHeader("Accept", "application/json").Param("limit",
		strconv.Itoa(pageSize))
	if token != "" {
		request = request.Param("continue", token)
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return listMeta{}, err
	}
	// Close closes the connection if the body was not read to its end.
	defer func(body io.Closer) { _ = body.Close() }(body)
	return scanList(body, visit)
}
