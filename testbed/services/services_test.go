// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package services_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/echo/operator/plan"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const (
	limit = 4 * time.Minute
	port  = 18080 // of Services
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// bed is a cluster with the sample operator's server as an image.
type bed struct {
	t      *testing.T
	client *kubernetes.Clientset
	ns     string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	config := testenv.Shared(t, cluster.Options{Pods: true, Images: map[string]cluster.Image{
		plan.ServerImage: {Path: testenv.Binary(t, build.EchoServer)},
	}}).RESTConfig()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, client: client, ns: testenv.Namespace(t, config, "services")}
	b.eventually("service account", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(b.ns).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return b
}

func (b *bed) eventually(what string, check func(context.Context) error) {
	b.t.Helper()
	testenv.Eventually(b.t, limit, what, check)
}

// pod runs an echo server that answers with its pod's name, and is ready only if its readiness gate says so.
func (b *bed) pod(name string, gates ...corev1.PodReadinessGate) {
	b.t.Helper()
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name,
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	_, err := b.client.CoreV1().Pods(b.ns).Create(b.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "echo"}},
		Spec: corev1.PodSpec{
			ReadinessGates: gates,
			Containers: []corev1.Container{{
				Name: "server", Image: plan.ServerImage + ":1.0.0",
				Env: []corev1.EnvVar{{Name: "ECHO_MESSAGE", Value: name}, {Name: "ECHO_VERSION", Value: "1.0.0"},
					field("POD_NAME", "metadata.name"), field("POD_IP", "status.podIP")},
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: plan.ServerPort}},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")},
				}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
}

// service creates a Service of the pods and returns its cluster IP.
func (b *bed) service(name string, number int32) string {
	b.t.Helper()
	service, err := b.client.CoreV1().Services(b.ns).Create(b.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "echo"},
			Ports:    []corev1.ServicePort{{Name: "http", Port: number, TargetPort: intstr.FromString("http")}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	if ip := net.ParseIP(service.Spec.ClusterIP); !ip.IsLoopback() {
		b.t.Fatalf("the cluster IP %q is not on loopback", service.Spec.ClusterIP)
	}
	return service.Spec.ClusterIP
}

// ask asks once, on a connection of its own, and returns the body.
func ask(ctx context.Context, ip string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+net.JoinHostPort(ip, fmt.Sprint(port))+"/", nil)
	if err != nil {
		return "", err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// refused wants a refusal, not only an error.
func refused(ctx context.Context, ip string) error {
	body, err := ask(ctx, ip)
	if err == nil {
		return fmt.Errorf("it answers %s", body)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("want a refused connection, have %w", err)
	}
	return nil
}

// answersOf wants answers from exactly these pods, in as many questions.
func answersOf(ip string, pods ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		seen := map[string]bool{}
		for range pods {
			body, err := ask(ctx, ip)
			if err != nil {
				return err
			}
			for _, pod := range pods {
				seen[pod] = seen[pod] || strings.Contains(body, `"pod":"`+pod+`"`)
			}
		}
		for _, pod := range pods {
			if !seen[pod] {
				return fmt.Errorf("%d answers, none of %s", len(pods), pod)
			}
		}
		return nil
	}
}

// TestServiceFollowsItsPods dials a Service through the life of its pods.
func TestServiceFollowsItsPods(t *testing.T) {
	b := newBed(t)
	ip := b.service("echo", port)
	if err := refused(t.Context(), ip); err != nil {
		t.Fatalf("without a pod: %v", err)
	}
	b.pod("one")
	b.eventually("the pod answers at the Service", answersOf(ip, "one"))
	b.pod("two")
	b.pod("three")
	b.eventually("connections go to the pods in turn", answersOf(ip, "one", "two", "three"))
	b.pod("blocked", corev1.PodReadinessGate{ConditionType: "example.com/never"})
	b.eventually("the gated pod runs", func(ctx context.Context) error {
		pod, err := b.client.CoreV1().Pods(b.ns).Get(ctx, "blocked", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("phase %s", pod.Status.Phase)
		}
		return err
	})
	for range 4 * 5 { // five turns, if it took part
		if body, err := ask(t.Context(), ip); err != nil || strings.Contains(body, `"pod":"blocked"`) {
			t.Fatalf("a pod that is not ready takes part: %s, %v", body, err)
		}
	}
	b.eventually("connections still go to the others in turn", answersOf(ip, "one", "two", "three"))
	for _, name := range []string{"one", "two", "three"} {
		if err := b.client.CoreV1().Pods(b.ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	b.eventually("the last ready pod is gone", func(ctx context.Context) error { return refused(ctx, ip) })
}

// TestDeletedServiceGivesItsAddressBack makes a second Service with the address of the first.
func TestDeletedServiceGivesItsAddressBack(t *testing.T) {
	b := newBed(t)
	b.pod("one")
	ip := b.service("first", port)
	b.eventually("the first answers", answersOf(ip, "one"))
	if err := b.client.CoreV1().Services(b.ns).Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.eventually("the first is refused", func(ctx context.Context) error { return refused(ctx, ip) })

	b.eventually("the address is given out again", func(ctx context.Context) error {
		_, err := b.client.CoreV1().Services(b.ns).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "second"},
			Spec: corev1.ServiceSpec{
				ClusterIP: ip, Selector: map[string]string{"app": "echo"},
				Ports: []corev1.ServicePort{{Port: port, TargetPort: intstr.FromInt32(plan.ServerPort)}},
			},
		}, metav1.CreateOptions{})
		return err
	})
	b.eventually("the second answers", answersOf(ip, "one"))
}

// TestLowPortIsServedOrExplained: whether an ordinary user may listen on a low port is the machine's to say.
func TestLowPortIsServedOrExplained(t *testing.T) {
	b := newBed(t)
	b.pod("one")
	ip := b.service("low", 80)
	b.eventually("port 80 is open, or an Event says why not", func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(ip, "80"))
		if err == nil {
			return conn.Close()
		}
		events, listErr := b.client.CoreV1().Events(b.ns).List(ctx,
			metav1.ListOptions{FieldSelector: "involvedObject.kind=Service,reason=NotServed"})
		if listErr != nil {
			return listErr
		}
		if len(events.Items) == 0 {
			return err
		}
		return nil
	})
}
