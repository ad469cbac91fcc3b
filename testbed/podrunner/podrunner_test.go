// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package podrunner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/podrunner"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

const (
	limit = 4 * time.Minute
	image = "example.com/testapp"
	port  = 8080
)

// TestMain lets the test binary be the program in the pods, too.
func TestMain(m *testing.M) {
	if os.Getenv(appMode) != "" {
		os.Exit(app())
	}
	os.Exit(testenv.Main(m))
}

// bed is a cluster with a pod runner inside the test.
type bed struct {
	t      *testing.T
	client *kubernetes.Clientset
	ns     string
	opts   podrunner.Options
	stop   func()
}

func newBed(t *testing.T) *bed {
	t.Helper()
	return newBedOn(t, testenv.Shared(t, cluster.Options{}))
}

func newBedOn(t *testing.T, c *cluster.Cluster) *bed {
	t.Helper()
	config := c.RESTConfig()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, client: client, ns: testenv.Namespace(t, config, "pods"), opts: podrunner.Options{
		Config: config, Node: strings.ToLower(t.Name()), Dir: t.TempDir(),
		Images:  podrunner.Images{image: {Path: self}, image + ":missing": {Missing: true}},
		IPRange: fmt.Sprintf("127.%d.%d.0/24", 100+rand.IntN(100), rand.IntN(256)),
	}}
	b.eventually("service account", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(b.ns).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	b.start()
	t.Cleanup(func() { b.stop() })
	return b
}

// start runs the pod runner; stop ends it and waits.
func (b *bed) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- podrunner.Run(ctx, b.opts) }()
	b.stop = func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("pod runner: %v", err)
		}
		done <- nil
	}
}

func (b *bed) eventually(what string, check func(context.Context) error) {
	b.t.Helper()
	testenv.Eventually(b.t, limit, what, check)
}

// appPod is a pod of the test's program in the given mode.
func appPod(mode string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: mode},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](5),
			Containers: []corev1.Container{{
				Name: "app", Image: image + ":1",
				Env: []corev1.EnvVar{{Name: appMode, Value: mode}, {Name: "NAMESPACE", ValueFrom: &corev1.EnvVarSource{
					FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}},
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port}},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")}}},
			}},
		},
	}
}

// watchLiveness restarts the program where it says that it is broken, and not where it is slow to answer.
func watchLiveness(pod *corev1.Pod) {
	c := &pod.Spec.Containers[0]
	c.LivenessProbe = c.ReadinessProbe.DeepCopy()
	c.LivenessProbe.TimeoutSeconds = 60
}

func (b *bed) create(pod *corev1.Pod) *corev1.Pod {
	b.t.Helper()
	created, err := b.client.CoreV1().Pods(b.ns).Create(b.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return created
}

// until waits for a pod to be as check wants it.
func (b *bed) until(name, what string, check func(*corev1.Pod) bool) *corev1.Pod {
	b.t.Helper()
	var pod *corev1.Pod
	b.eventually("pod "+name+" "+what, func(ctx context.Context) error {
		got, err := b.client.CoreV1().Pods(b.ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pod = got
		if !check(pod) {
			status, err := json.Marshal(pod.Status)
			return fmt.Errorf("is not: %s (%w)", status, err)
		}
		return nil
	})
	return pod
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// ask sends a request to the program in a pod.
func ask(ctx context.Context, pod *corev1.Pod, path string) (string, error) {
	url := "http://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(port)) + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), err
}

func (b *bed) ask(pod *corev1.Pod, path string) string {
	b.t.Helper()
	answer, err := ask(b.t.Context(), pod, path)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer
}

func pidOf(t *testing.T, pod *corev1.Pod) int {
	t.Helper()
	id := strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "process://")
	pid, err := strconv.Atoi(strings.Split(id, "-")[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestPodLife(t *testing.T) {
	b := newBed(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"key": "one"}}
	if _, err := b.client.CoreV1().Secrets(b.ns).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := appPod(modeServe)
	pod.Spec.InitContainers = []corev1.Container{{
		Name: "init", Image: image, Command: []string{"/app", "touch", "/work/touched"},
		Env:          []corev1.EnvVar{{Name: appMode, Value: modeTouch}},
		VolumeMounts: []corev1.VolumeMount{{Name: "work", MountPath: "/work"}},
	}}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}},
	}
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = []corev1.VolumeMount{{Name: "work", MountPath: "/work"},
		{Name: "secret", MountPath: "/etc/secret"}}
	c.Command = []string{"/app", "--name=$(NAME)"}
	c.Env = append(c.Env,
		corev1.EnvVar{Name: "NAME",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		corev1.EnvVar{Name: "SECRET_FILE", Value: "/etc/secret/key"},
		corev1.EnvVar{Name: "TOUCHED", Value: "/work/touched"},
	)
	b.create(pod)
	pod = b.until(pod.Name, "is ready", ready)

	if diff := cmp.Diff("--name=serve", b.ask(pod, "/args")); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if got := b.ask(pod, "/file?env=TOUCHED"); got != "touched" {
		t.Errorf("file of the init container holds %q", got)
	}
	if got := b.ask(pod, "/file?env=SECRET_FILE"); got != "one" {
		t.Errorf("secret's file holds %q, want one", got)
	}
	secret.StringData["key"] = "two"
	if _, err := b.client.CoreV1().Secrets(b.ns).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.eventually("secret's file changes", func(ctx context.Context) error {
		got, err := ask(ctx, pod, "/file?env=SECRET_FILE")
		if err == nil && got != "two" {
			err = fmt.Errorf("it holds %q", got)
		}
		return err
	})
	pid := pidOf(t, pod)
	if err := b.client.CoreV1().Pods(b.ns).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.eventually("pod is gone", func(ctx context.Context) error {
		_, err := b.client.CoreV1().Pods(b.ns).Get(ctx, pod.Name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("get: %w", err)
		}
		return nil
	})
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d outlived its pod", pid)
	}
	if _, err := os.Stat(filepath.Join(b.opts.Dir, b.ns+"_serve_app.log")); err != nil {
		t.Errorf("log is not kept: %v", err)
	}
}

// A pod acts as its service account and has no right that this was not given.
func TestIdentity(t *testing.T) {
	b := newBed(t)
	b.create(appPod(modeServe))
	pod := b.until(modeServe, "is ready", ready)
	if got, want := b.ask(pod, "/whoami"), "system:serviceaccount:"+b.ns+":default"; got != want {
		t.Errorf("pod is %q, want %q", got, want)
	}
	if got := b.ask(pod, "/list"); got != string(metav1.StatusReasonForbidden) {
		t.Errorf("list of pods without a right: %q, want Forbidden", got)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "view"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.ns, Name: "default"}},
	}
	if _, err := b.client.RbacV1().RoleBindings(b.ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.eventually("pod may list", func(ctx context.Context) error {
		got, err := ask(ctx, pod, "/list")
		if err == nil && got != "1" {
			err = fmt.Errorf("answer %q", got)
		}
		return err
	})
}

func TestCrashLoop(t *testing.T) {
	b := newBed(t)
	b.create(appPod(modeCrash))
	pod := b.until(modeCrash, "crashes in a loop", func(pod *corev1.Pod) bool {
		s := pod.Status.ContainerStatuses
		return len(s) == 1 && s[0].RestartCount >= 1 && s[0].State.Waiting != nil &&
			s[0].State.Waiting.Reason == "CrashLoopBackOff"
	})
	last := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated
	if last == nil || last.ExitCode != 7 || !strings.Contains(last.Message, "crashing on purpose") {
		t.Errorf("last termination is %+v, want exit code 7 and the output", last)
	}
	if pod.Status.Phase != corev1.PodRunning || ready(pod) {
		t.Errorf("phase %s, ready %t", pod.Status.Phase, ready(pod))
	}
}

func TestLiveness(t *testing.T) {
	b := newBed(t)
	pod := appPod(modeServe)
	watchLiveness(pod)
	b.create(pod)
	pod = b.until(pod.Name, "is ready", ready)
	b.ask(pod, "/break")
	b.until(pod.Name, "is restarted and ready", func(pod *corev1.Pod) bool {
		return pod.Status.ContainerStatuses[0].RestartCount == 1 && ready(pod)
	})
}

func TestStub(t *testing.T) {
	b := newBed(t)
	pod := appPod("stub")
	pod.Spec.Containers[0].Image = "example.com/unknown:1"
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	b.create(pod)
	pod = b.until(pod.Name, "is ready", ready)
	if pod.Labels[podrunner.Stub] != "true" || pod.Annotations[podrunner.Stub] != "true" ||
		pod.Status.Phase != corev1.PodRunning {
		t.Errorf("stub is %s with labels %v and annotations %v", pod.Status.Phase, pod.Labels, pod.Annotations)
	}
}

// A pod of an image that no registry has waits for it, and is not Ready.
func TestMissingImage(t *testing.T) {
	b := newBed(t)
	pod := appPod(modeServe)
	pod.Spec.Containers[0].Image = image + ":missing"
	b.create(pod)
	pod = b.until(pod.Name, "waits for its image", func(pod *corev1.Pod) bool {
		s := pod.Status.ContainerStatuses
		return len(s) == 1 && s[0].State.Waiting != nil && s[0].State.Waiting.Reason == "ErrImagePull"
	})
	waiting := pod.Status.ContainerStatuses[0].State.Waiting
	if want := `failed to pull image "` + image + `:missing": not found`; waiting.Message != want || ready(pod) {
		t.Errorf("it waits because %q and is ready: %t; want %q", waiting.Message, ready(pod), want)
	}
}

func TestJob(t *testing.T) {
	tests := map[string]struct {
		mode string
		want batchv1.JobConditionType
	}{
		"succeeds": {modeSucceed, batchv1.JobComplete},
		"fails":    {modeCrash, batchv1.JobFailed},
	}
	b := newBed(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pod := appPod(tt.mode)
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{
				BackoffLimit: ptr.To[int32](0), Template: corev1.PodTemplateSpec{Spec: pod.Spec}}}
			if _, err := b.client.BatchV1().Jobs(b.ns).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			b.eventually("job ends", func(ctx context.Context) error {
				got, err := b.client.BatchV1().Jobs(b.ns).Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				for _, c := range got.Status.Conditions {
					if c.Type == tt.want && c.Status == corev1.ConditionTrue {
						return nil
					}
				}
				return fmt.Errorf("conditions are %v", got.Status.Conditions)
			})
		})
	}
}

// Another run takes the pods over: same address, one restart more.
func TestTakeOver(t *testing.T) {
	b := newBed(t)
	b.create(appPod(modeServe))
	before := b.until(modeServe, "is ready", ready)
	pid := pidOf(t, before)
	b.stop()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d outlived the pod runner", pid)
	}
	b.start()
	after := b.until(modeServe, "is restarted and ready", func(pod *corev1.Pod) bool {
		return pod.Status.ContainerStatuses[0].RestartCount == 1 && ready(pod)
	})
	if after.Status.PodIP != before.Status.PodIP {
		t.Errorf("address changed from %s to %s", before.Status.PodIP, after.Status.PodIP)
	}
	if got := b.ask(after, "/healthz"); got != "ok" {
		t.Errorf("answer %q", got)
	}
}

func TestMissingSecret(t *testing.T) {
	b := newBed(t)
	pod := appPod(modeServe)
	pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env,
		corev1.EnvVar{Name: "S", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "late"},
				Key: "k"}}})
	b.create(pod)
	b.until(pod.Name, "waits for its secret", func(pod *corev1.Pod) bool {
		s := pod.Status.ContainerStatuses
		return len(s) == 1 && s[0].State.Waiting != nil && s[0].State.Waiting.Reason == "CreateContainerConfigError"
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "late"}, StringData: map[string]string{"k": "v"}}
	if _, err := b.client.CoreV1().Secrets(b.ns).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.until(pod.Name, "is ready", func(pod *corev1.Pod) bool {
		return ready(pod) && pod.Status.ContainerStatuses[0].RestartCount == 0
	})
}

// While the API server is away, pods run on; what happened meanwhile is
// reported once it is back.
func TestAPIServerRestart(t *testing.T) {
	c := testenv.Cluster(t, cluster.Options{})
	b := newBedOn(t, c)
	pod := appPod(modeServe)
	watchLiveness(pod)
	b.create(pod)
	pod = b.until(pod.Name, "is ready", ready)
	pid := pidOf(t, pod)

	c.KillAPIServer()
	b.ask(pod, "/break")
	b.eventually("program is restarted", func(ctx context.Context) error {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("process %d still runs", pid)
		}
		_, err := ask(ctx, pod, "/healthz")
		return err
	})
	if err := c.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.until(pod.Name, "is reported as restarted", func(pod *corev1.Pod) bool {
		return pod.Status.ContainerStatuses[0].RestartCount == 1 && ready(pod)
	})
}
