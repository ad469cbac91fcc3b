// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/prometheus"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// asExporter makes the test binary the program in a pod.
const asExporter = "PROMETHEUS_TEST_EXPORTER"

const limit = 4 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(asExporter) != "" {
		fmt.Fprintln(os.Stderr, http.ListenAndServe(net.JoinHostPort(os.Getenv("POD_IP"), "8080"),
			metrics("of_a_pod 1\n")))
		os.Exit(1)
	}
	os.Exit(testenv.Main(m))
}

func metrics(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprint(w, text)
	})
}

func binaries(t *testing.T) map[string]string {
	t.Helper()
	paths, err := build.Ensure(t.Context(), t.Output(), build.Prometheus, build.Promtool)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// start runs a server of the test's own that looks every second.
func start(t *testing.T, opts prometheus.Options) *prometheus.Server {
	t.Helper()
	opts.Binary, opts.Interval = binaries(t)[build.Prometheus], time.Second
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	s, err := prometheus.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background()) })
	return s
}

// eventually waits until a query gives one value.
func eventually(t *testing.T, s *prometheus.Server, promql string, want float64) {
	t.Helper()
	testenv.Eventually(t, limit, promql, func(ctx context.Context) error {
		found, err := s.Query(ctx, promql, time.Time{})
		if err != nil || len(found) != 1 || float64(found[0].Value) != want {
			return fmt.Errorf("%s gives %v (%w), want %v", promql, found, err, want)
		}
		return nil
	})
}

const rule = `groups: [{name: doubles, rules: [{record: "target:doubled", expr: 2 * of_a_target}]}]`

func TestScrapesAndEvaluates(t *testing.T) {
	target := httptest.NewServer(metrics("of_a_target{cluster=\"its-own\"} 21\n"))
	t.Cleanup(target.Close)
	s := start(t, prometheus.Options{
		Self: true, Rules: map[string][]byte{"doubles.yaml": []byte(rule)},
		Jobs: []prometheus.Job{{Name: "fixed", Targets: []string{strings.TrimPrefix(target.URL, "http://")},
			Labels: map[string]string{"cluster": "of-the-job", "zone": "z"}}},
	})
	eventually(t, s, `target:doubled{cluster="its-own",zone="z"}`, 42)
	eventually(t, s, `up{job="prometheus"}`, 1)
	if state, err := s.Evaluated(t.Context()); err != nil || state != (prometheus.RuleState{Groups: 1, Recording: 1}) {
		t.Errorf("rules: %+v, %v", state, err)
	}

	// What it refuses, it tells, and goes on with what it had.
	err := s.SetRules(t.Context(), map[string][]byte{"doubles.yaml": []byte(strings.Replace(rule, "2 *", "2 +*", 1))})
	if !errors.Is(err, prometheus.ErrRefused) || !strings.Contains(err.Error(), "unexpected") {
		t.Errorf("broken rules: %v", err)
	}
	if state, err := s.Evaluated(t.Context()); err != nil || state.Recording != 1 {
		t.Errorf("rules after broken ones: %+v, %v", state, err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatalf("restart after broken rules: %v", err)
	}
	if err := s.SetRules(t.Context(), map[string][]byte{"other.yaml": []byte(strings.Replace(rule, "2 *", "3 *",
		1))}); err != nil {
		t.Fatal(err)
	}
	eventually(t, s, `target:doubled`, 63)

	// Its data outlive a crash.
	before := time.Now()
	s.Kill()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := s.Query(t.Context(), `last_over_time(target:doubled[5m])`, before); err != nil || len(found) != 1 {
		t.Errorf("after a crash: %v, %v", found, err)
	}
}

func TestFailingRuleIsNamed(t *testing.T) {
	target := httptest.NewServer(metrics("of_a_target{a=\"1\"} 21\nof_a_target{a=\"2\"} 21\n"))
	t.Cleanup(target.Close)
	s := start(t, prometheus.Options{
		Rules: map[string][]byte{"bad.yaml": []byte(strings.Replace(rule, "2 *", "of_a_target * on () ", 1))},
		Jobs:  []prometheus.Job{{Name: "fixed", Targets: []string{strings.TrimPrefix(target.URL, "http://")}}},
	})
	eventually(t, s, "count(of_a_target)", 2)
	testenv.Eventually(t, limit, "what was discovered", func(ctx context.Context) error {
		_, err := s.Evaluated(ctx)
		if err != nil && !errors.Is(err, prometheus.ErrUnevaluated) &&
			strings.Contains(err.Error(), "rule target:doubled of doubles: ") {
			return nil
		}
		return fmt.Errorf("a rule that fails: %w", err)
	})
}

func TestHistory(t *testing.T) {
	dir := t.TempDir()
	end := time.Now().Add(-4 * time.Hour).Truncate(time.Minute)
	odd := "odd \"chars\" \\ \n é"
	value := func(at time.Time) (float64, bool) {
		if at.Equal(end.Add(-time.Minute)) {
			return math.NaN(), true
		}
		return float64(at.Minute() % 2), !at.Equal(end.Add(-3 * time.Minute))
	}
	err := prometheus.Backfill(t.Context(), binaries(t)[build.Promtool], dir, []prometheus.History{
		{Name: "past", Labels: map[string]string{"of": odd}, From: end.Add(-3 * time.Hour), To: end,
			Interval: time.Minute, Value: value},
		{Name: "other", From: end.Add(-time.Hour), To: end, Interval: time.Minute,
			Value: func(time.Time) (float64, bool) { return 1e-7, true }},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, prometheus.Options{Dir: dir})
	for promql, want := range map[string]float64{
		"count_over_time(past[3h])":         179,
		"sum_over_time(past[1h] offset 1h)": 30,
		"other":                             1e-7,
		"count_over_time(((past != past) > bool 2)[2m:1m])": 1,
	} {
		found, err := s.Query(t.Context(), promql, end.Add(-time.Minute))
		if err != nil || len(found) != 1 || math.Abs(float64(found[0].Value)-want) > 1e-12 {
			t.Errorf("%s gives %v (%v), want %v", promql, found, err, want)
			continue
		}
		if of := found[0].Metric["of"]; of != "" && string(of) != odd {
			t.Errorf("label is %q, want %q", of, odd)
		}
	}
}

// TestPods finds a pod of a cluster by Prometheus's own discovery.
func TestPods(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const image = "example.com/exporter:1"
	c := testenv.Cluster(t, cluster.Options{Pods: true, Images: map[string]cluster.Image{image: {Path: self}}})
	namespace := testenv.Namespace(t, c.RESTConfig(), "exporter")
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	podIP := corev1.EnvVar{Name: "POD_IP",
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}
	pod := func(name, port string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "exporter", Image: image, Env: []corev1.EnvVar{{Name: asExporter, Value: "yes"}, podIP},
				Ports: []corev1.ContainerPort{{Name: port, ContainerPort: 8080}},
			}}},
		}
	}
	for _, p := range []*corev1.Pod{pod("found", "metrics"), pod("of-no-interest", "web")} {
		if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, prometheus.Options{Jobs: []prometheus.Job{prometheus.PodsOf("canary", c.Kubeconfig())}})
	eventually(t, s, fmt.Sprintf(`of_a_pod{cluster="canary",namespace=%q,pod="found"}`, namespace), 1)
	eventually(t, s, "count(of_a_pod)", 1)
}
