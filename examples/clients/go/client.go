// Command client writes and reads guides, like a program for authors.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	pb "expertise/v1"

	"github.com/google/uuid"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

const product = 1204

// author writes and reads guides of one account.
type author struct{ *service }

func (a author) createGuide(ctx context.Context, name string, roles ...pb.AccessLevel) (*pb.Task, error) {
	response, err := a.tasks.CreateTask(ctx, &pb.CreateTaskRequest{
		Task: &pb.Task{Name: name, ProductId: proto.Int64(product), Roles: roles},
		// A request_id makes it safe to retry a create.
		RequestId: uuid.NewString(),
	})
	return response.GetTask(), err
}

func (a author) importGuide(ctx context.Context, document *pb.TaskDocument) (*pb.Task, error) {
	request := &pb.ImportTaskRequest{Document: document, RequestId: uuid.NewString()}
	response, err := a.tasks.ImportTask(ctx, request)
	return response.GetTask(), err
}

// insert inserts a step after another one of its guide, or at the end.
func (a author) insert(ctx context.Context, step *pb.Step, prevstep, requestID string) (*pb.CreateStepResponse, error) {
	request := &pb.CreateStepRequest{Step: step, Prevstep: prevstep, RequestId: requestID}
	return a.steps.CreateStep(ctx, request)
}

// listSteps returns all steps of a guide with their bodies, page after page.
func (a author) listSteps(ctx context.Context, task string) ([]*pb.Step, error) {
	var steps []*pb.Step
	request := &pb.ListStepsRequest{Task: task, Expand: []string{"body"}, PageSize: 4}
	for {
		response, err := a.steps.ListSteps(ctx, request)
		if err != nil {
			return nil, err
		}
		steps = append(steps, response.Steps...)
		if response.NextPageToken == "" {
			return steps, nil
		}
		request.PageToken = response.NextPageToken
	}
}

// buildAGuide creates a guide step by step.
func (a author) buildAGuide(ctx context.Context) (*pb.Task, error) {
	guide, err := a.createGuide(ctx, "Laptop will not start", pb.AccessLevel_ACCESS_LEVEL_USER)
	if err != nil {
		return nil, err
	}
	fmt.Printf("Created %q for %s\n", guide.Name, guide.Roles[0])

	question := newStep(guide, pb.StepType_STEP_TYPE_OBSERVATION, "Is the charging lamp lit?")
	question.FeedbackConfig = []*pb.FeedbackConfig{{
		Name:   "charge_light",
		Type:   "enum",
		Values: []*pb.FeedbackValue{{Key: "on", Value: "Yes"}, {Key: "off", Value: "No"}},
	}}
	lamp, err := a.insertAndShow(ctx, question, "")
	if err != nil {
		return nil, err
	}
	end := newStep(guide, pb.StepType_STEP_TYPE_END, "Call the service desk")
	if _, err := a.insertAndShow(ctx, end, ""); err != nil {
		return nil, err
	}
	solution := newStep(guide, pb.StepType_STEP_TYPE_SOLUTION, "Try another outlet")
	solution.Body = proto.String("<p>Without a power strip.</p>")
	solution.Cost = proto.Int32(2)
	solution.DependencyShorthand = proto.String("components.1204.charge_light = off")
	outlet, err := a.insertAndShow(ctx, solution, lamp.Guid)
	if err != nil {
		return nil, err
	}

	updated, err := a.steps.UpdateStep(ctx, &pb.UpdateStepRequest{
		// With the etag, the update fails if the step has changed since. The cost is not
		// in the mask and stays; the type cannot be changed.
		Step: &pb.Step{
			Guid:  outlet.Guid,
			Etag:  outlet.Etag,
			Title: "Try an outlet in another room",
			Cost:  proto.Int32(99),
			Type:  pb.StepType_STEP_TYPE_IDP,
		},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"title", "type"}},
	})
	if err != nil {
		return nil, err
	}
	fmt.Printf("Updated: %q, cost %d\n", updated.Step.Title, updated.Step.GetCost())
	fmt.Printf("Ignored: %s\n", strings.Join(updated.IgnoredPaths, ", "))
	return guide, nil
}

func (a author) insertAndShow(ctx context.Context, step *pb.Step, prevstep string) (*pb.Step, error) {
	inserted, err := a.insert(ctx, step, prevstep, uuid.NewString())
	if err != nil {
		return nil, err
	}
	fmt.Printf("Inserted %q: %s\n", inserted.Step.Title, inserted.Placement)
	return inserted.Step, nil
}

func newStep(guide *pb.Task, kind pb.StepType, title string) *pb.Step {
	return &pb.Step{Task: guide.Guid, ProductId: proto.Int64(product), Type: kind, Title: title}
}

// importAGuide imports a guide with one call, and lists its steps.
func (a author) importAGuide(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	document := &pb.TaskDocument{}
	if err := protojson.Unmarshal(text, document); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	guide, err := a.importGuide(ctx, document)
	if err != nil {
		return err
	}
	fmt.Printf("Imported %q: %d steps\n", guide.Name, len(guide.Steps))
	steps, err := a.listSteps(ctx, guide.Guid)
	if err != nil {
		return err
	}
	for index, step := range steps {
		fmt.Printf("%d. %s, cost %d: %s\n", index+1, step.Type, step.GetCost(), step.Title)
		body := "(no body)"
		if step.Body != nil {
			body = *step.Body
		}
		fmt.Printf("   %s\n", body)
		fmt.Printf("   de: %s\n", step.Translations["de"].GetTitle())
	}
	return nil
}

// sendInvalidRequest sends a request with four violations; the error lists all of them.
func (a author) sendInvalidRequest(ctx context.Context, guide *pb.Task) {
	step := newStep(guide, pb.StepType_STEP_TYPE_OBSERVATION, " ")
	step.ProductId = proto.Int64(0)
	step.DependencyShorthand = proto.String("components.1204.charge_light is off")
	if _, err := a.insert(ctx, step, "", uuid.NewString()); err != nil {
		fmt.Printf("Error: %s\n", explain(err))
		for _, it := range violations(err) {
			fmt.Printf("- %s: %s (%s)\n", it.Field, it.Description, it.Reason)
		}
	}
}

// repeat repeats a create, like after a lost response.
func (a author) repeat(ctx context.Context, guide *pb.Task) error {
	step := newStep(guide, pb.StepType_STEP_TYPE_INFORMATION, "Keep the receipt")
	requestID := uuid.NewString()
	first, err := a.insert(ctx, step, "", requestID)
	if err != nil {
		return err
	}
	again, err := a.insert(ctx, step, "", requestID)
	if err != nil {
		return err
	}
	same := "a second step"
	if first.Step.Guid == again.Step.Guid {
		same = "the same step"
	}
	fmt.Printf("Repeated: %s\n", same)

	step.Title = "Keep the box"
	if _, err := a.insert(ctx, step, "", requestID); err != nil {
		fmt.Printf("Changed and repeated: %s\n", explain(err))
	}

	fmt.Printf("Steps of %q:\n", guide.Name)
	steps, err := a.listSteps(ctx, guide.Guid)
	if err != nil {
		return err
	}
	for index, step := range steps {
		fmt.Printf("%d. %s\n", index+1, step.Title)
	}
	return nil
}

func run(address, account, file string) error {
	service, err := connect(address, account)
	if err != nil {
		return err
	}
	defer service.close()
	ctx, a := context.Background(), author{service}
	guide, err := a.buildAGuide(ctx)
	if err != nil {
		return err
	}
	if err := a.importAGuide(ctx, file); err != nil {
		return err
	}
	a.sendInvalidRequest(ctx, guide)
	return a.repeat(ctx, guide)
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "Usage: client ADDRESS ACCOUNT GUIDE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "The call failed:", explain(err))
		os.Exit(1)
	}
}
