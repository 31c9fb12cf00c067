// Package ui looks at Temporal's web UI the way a person does: it opens it in a headless Chromium, follows the links, and
// compares the text on the pages with what must be there. What the API would answer does not count.
//
// Check is for tests that run a lab: they know which workflows exist and what these should say about themselves. The
// screenshots it takes on the way are the pictures in docs/.
package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

const (
	// arrival is how long the browser may take to start, and a page to appear at all: usually seconds, but more than a
	// minute on a machine that is busy with ten other things.
	arrival = 3 * time.Minute
	// defaultPatience is how long a page that has appeared may take to show what is expected of it.
	defaultPatience = time.Minute
	// reloadAfter is how long the list is watched before it is reloaded: what it shows is a little old, and does not update
	// itself.
	reloadAfter = 5 * time.Second
	// lookEvery is the pause between two looks at a page. More frequent looks would only delay the page.
	lookEvery = 250 * time.Millisecond
)

// answered are texts of which the list shows one when the server has answered: the text below the workflows, or the text
// shown when there are none.
var answered = []string{"Per Page", "No Workflows Found"}

// programs are the names Chromium goes by, the preferred first.
var programs = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// ErrNoBrowser is returned when no Chromium is installed; its text says how to change that.
var ErrNoBrowser = errors.New("no Chromium is installed: run tools/chromium.sh, or on Debian: apt-get install -y chromium")

// Expectation is what the UI has to show.
type Expectation struct {
	// URL is the address of the UI, such as http://127.0.0.1:8233.
	URL string
	// Namespace is the Temporal namespace.
	Namespace string
	// Query, when not empty, is the filter of the list in Temporal's list filter language.
	Query string
	// Workflows must be in the list, and each of their pages must show what is expected of it.
	Workflows []Workflow
	// Screenshot, when not empty, is the PNG file the list is saved to.
	Screenshot string
	// Patience limits how long a page that has appeared may take to show what is expected of it; zero means a minute.
	Patience time.Duration
}

// Workflow is what the pages of one workflow have to show.
type Workflow struct {
	// ID is the workflow's id; its latest run is opened.
	ID string
	// Timeline are texts on its first page: the name of its type, the summaries of its activities and timers.
	Timeline []string
	// Details are texts of its summary and of its static or current details.
	Details []string
	// Attributes are search attributes with their values.
	Attributes map[string]string
	// Screenshot, when not empty, is the PNG file that the page with its details is saved to, or its first page if no
	// details are expected.
	Screenshot string
}

// Check opens the UI. It returns an error that names the page, what is missing on it and what is there instead, or
// ErrNoBrowser if there is no browser.
func Check(ctx context.Context, want Expectation) error {
	tab, closeTab, err := open(ctx, cmp.Or(want.Patience, defaultPatience))
	if err != nil {
		return err
	}
	defer closeTab()
	list := want.URL + "/namespaces/" + url.PathEscape(want.Namespace) + "/workflows"
	if err := tab.lists(list, want); err != nil {
		return fmt.Errorf("the list of workflows: %w", err)
	}
	if err := tab.save(want.Screenshot); err != nil {
		return err
	}
	for _, workflow := range want.Workflows {
		if err := tab.check(list+"/"+url.PathEscape(workflow.ID), workflow); err != nil {
			return fmt.Errorf("workflow %s: %w", workflow.ID, err)
		}
	}
	return nil
}

// tab is a page of a running browser.
type tab struct {
	ctx      context.Context
	patience time.Duration
}

// open starts a new browser, without a trace of other sessions. The returned function ends it.
func open(ctx context.Context, patience time.Duration) (tab, func(), error) {
	var program string
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		return tab{}, nil, ErrNoBrowser
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(program), chromedp.WSURLReadTimeout(arrival)}
	if os.Geteuid() == 0 {
		// Chromium's sandbox refuses to work for root; the only site opened here is the lab's own.
		options = append(options, chromedp.NoSandbox)
	}
	browser, end := chromedp.NewContext(ctx, chromedp.WithAllocatorOptions(options...))
	if err := chromedp.Do(browser, chromedp.EmulateViewport(1500, 900)); err != nil {
		end()
		return tab{}, nil, fmt.Errorf("start %s: %w", program, err)
	}
	return tab{ctx: browser, patience: patience}, end, nil
}

// lists waits until the list shows every workflow, reloading it now and then.
func (t tab) lists(list string, want Expectation) error {
	var ids []string
	for _, workflow := range want.Workflows {
		ids = append(ids, workflow.ID)
	}
	if want.Query != "" {
		list += "?query=" + url.QueryEscape(want.Query)
	}
	var deadline time.Time
	for {
		if err := t.visit(list); err != nil {
			return err
		}
		if err := t.await(arrival, func(page page) bool { return len(page.lacks(answered)) < len(answered) }); err != nil {
			return fmt.Errorf("does not come: %w", err)
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(t.patience)
		}
		err := t.shows(ids, min(reloadAfter, time.Until(deadline)))
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

func (t tab) check(page string, workflow Workflow) error {
	if err := t.visit(page); err != nil {
		return err
	}
	if err := t.shows([]string{workflow.ID}, arrival); err != nil {
		return fmt.Errorf("its page: %w", err)
	}
	if err := t.has(workflow.Timeline, t.patience); err != nil {
		return fmt.Errorf("its timeline: %w", err)
	}
	if len(workflow.Details) > 0 {
		if err := t.press("User Metadata"); err != nil {
			return err
		}
		if err := t.shows(workflow.Details, t.patience); err != nil {
			return fmt.Errorf("its metadata: %w", err)
		}
	}
	if err := t.save(workflow.Screenshot); err != nil {
		return err
	}
	if len(workflow.Attributes) > 0 {
		if err := t.press("Search Attributes"); err != nil {
			return err
		}
		var texts []string
		for name, value := range workflow.Attributes {
			texts = append(texts, name, value)
		}
		if err := t.shows(texts, t.patience); err != nil {
			return fmt.Errorf("its search attributes: %w", err)
		}
	}
	return nil
}

func (t tab) visit(page string) error {
	ctx, cancel := context.WithTimeout(t.ctx, arrival)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(page)); err != nil {
		return fmt.Errorf("open %s: %w", page, err)
	}
	return nil
}

// press follows the link with this label, as soon as there is one.
func (t tab) press(label string) error {
	quoted, err := json.Marshal(label)
	if err != nil {
		return err
	}
	link := `[...document.querySelectorAll("a, button")].find(e => e.innerText.trim() === ` + string(quoted) + `)`
	if err := t.await(arrival, func(page) bool {
		pressed, err := chromedp.Run(t.ctx, chromedp.Evaluate[bool](`(() => { const e = `+link+`; if (e) e.click(); return !!e })()`))
		return err == nil && pressed
	}); err != nil {
		return fmt.Errorf("there is nothing labelled %q to press: %w", label, err)
	}
	return nil
}

// visible is what can be read on the page: the text of the document and of the frames in which the UI renders Markdown.
const visible = `[document, ...[...document.querySelectorAll("iframe")].map(frame => frame.contentDocument)].map(d => d?.body?.innerText ?? "").join("\n")`

// page is what can be read on a page.
type page string

// lacks returns the texts that are not on the page, ignoring line breaks.
func (p page) lacks(texts []string) []string {
	var left []string
	folded := fold(string(p))
	for _, text := range texts {
		if !strings.Contains(folded, fold(text)) {
			left = append(left, text)
		}
	}
	return left
}

func fold(text string) string { return strings.Join(strings.Fields(text), " ") }

// shows waits until every text can be read on the page.
func (t tab) shows(texts []string, within time.Duration) error {
	var left []string
	err := t.await(within, func(page page) bool {
		left = page.lacks(texts)
		return len(left) == 0
	})
	if err != nil {
		return fmt.Errorf("does not show %q: %w", left, err)
	}
	return nil
}

// scroll scrolls everything scrollable by half a page, and from the end back to the beginning; with back, to the beginning
// at once.
func (t tab) scroll(back bool) error {
	script := fmt.Sprintf(`(() => {
		for (const e of document.querySelectorAll("*")) {
			if (e !== document.scrollingElement && !/auto|scroll/.test(getComputedStyle(e).overflowY)) continue;
			const before = e.scrollTop;
			if (!%t) e.scrollTop += e.clientHeight / 2;
			if (e.scrollTop === before) e.scrollTop = 0;
		}
		return true;
	})()`, back)
	if _, err := chromedp.Run(t.ctx, chromedp.Evaluate[bool](script)); err != nil {
		return fmt.Errorf("scroll: %w", err)
	}
	return nil
}

// has waits until every text has been on the page, which it scrolls: only the visible part of a long list is in the
// document.
func (t tab) has(texts []string, within time.Duration) error {
	left := texts
	err := t.await(within, func(page page) bool {
		if left = page.lacks(left); len(left) == 0 {
			return true
		}
		_ = t.scroll(false) // a page that cannot be scrolled now can be at the next look
		return false
	})
	if err != nil {
		return fmt.Errorf("does not show %q: %w", left, err)
	}
	return t.scroll(true)
}

// await looks at the page until done accepts it, and once more when the time is up, because on a machine where one look
// takes that long, the page has had no chance. A page that is just being replaced by another cannot be read.
func (t tab) await(within time.Duration, done func(page) bool) error {
	for deadline := time.Now().Add(within); ; {
		last := !time.Now().Before(deadline)
		text, err := chromedp.Run(t.ctx, chromedp.Evaluate[string](visible))
		switch {
		case t.ctx.Err() != nil:
			return t.ctx.Err()
		case err == nil && done(page(text)):
			return nil
		case err != nil && last:
			return fmt.Errorf("read the page: %w", err)
		case last:
			return fmt.Errorf("not within %s; it shows:\n%s", within.Round(time.Second), strings.TrimSpace(text))
		}
		select {
		case <-time.After(lookEvery):
		case <-t.ctx.Done():
			return t.ctx.Err()
		}
	}
}

// save writes a screenshot of the page to a PNG file; without a name it does nothing.
func (t tab) save(file string) error {
	if file == "" {
		return nil
	}
	// The page's content is complete when this is called; animations (the timeline's bars) settle in less than a second.
	picture, err := chromedp.Run(t.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return fmt.Errorf("take a picture: %w", err)
	}
	if err := os.WriteFile(file, picture, 0o644); err != nil {
		return fmt.Errorf("save a picture: %w", err)
	}
	return nil
}
