// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package podrunner_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
)

// appMode is the variable that makes the test binary the program in a pod, and
// says which one.
const (
	appMode     = "PODRUNNER_TEST_APP"
	modeServe   = "serve"
	modeTouch   = "touch"
	modeCrash   = "crash"
	modeSucceed = "succeed"
)

func app() int {
	var err error
	switch os.Getenv(appMode) {
	case modeServe:
		err = serve()
	case modeTouch:
		err = os.WriteFile(os.Args[2], []byte("touched"), 0o600)
	case modeCrash:
		fmt.Println("crashing on purpose")
		return 7
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// serve answers questions about the process at the pod's address.
func serve() error {
	var broken atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
		answer(w)([]byte("ok"), nil)
	})
	mux.HandleFunc("/break", func(http.ResponseWriter, *http.Request) { broken.Store(true) })
	mux.HandleFunc("/args", func(w http.ResponseWriter, _ *http.Request) {
		answer(w)([]byte(strings.Join(os.Args[1:], " ")), nil)
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		answer(w)(os.ReadFile(os.Getenv(r.FormValue("env"))))
	})
	mux.HandleFunc("/whoami", func(w http.ResponseWriter, r *http.Request) { answer(w)(whoami(r)) })
	mux.HandleFunc("/list", func(w http.ResponseWriter, r *http.Request) { answer(w)(list(r)) })
	return http.ListenAndServe(net.JoinHostPort(os.Getenv("POD_IP"), strconv.Itoa(port)), mux)
}

func answer(w http.ResponseWriter) func([]byte, error) {
	return func(body []byte, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(body) // the client may be gone
	}
}

func clientFromEnv() (kubernetes.Interface, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

func whoami(r *http.Request) ([]byte, error) {
	client, err := clientFromEnv()
	if err != nil {
		return nil, err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().
		Create(r.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return []byte(review.Status.UserInfo.Username), nil
}

// list answers the number of pods in the pod's own namespace, or the reason
// why it may not know.
func list(r *http.Request) ([]byte, error) {
	client, err := clientFromEnv()
	if err != nil {
		return nil, err
	}
	pods, err := client.CoreV1().Pods(os.Getenv("NAMESPACE")).List(r.Context(), metav1.ListOptions{})
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return []byte(status.Status().Reason), nil
	}
	if err != nil {
		return nil, err
	}
	return []byte(strconv.Itoa(len(pods.Items))), nil
}
