/** apps/v1 Deployment: ReplicaSets of which one replaces the other. */
import { LabelSelectorSchema, ObjectMetaSchema } from '../meta.ts'
import { PodTemplateSpecSchema } from '../pod.ts'
import {
  bool,
  type Described,
  field,
  integer,
  intOrString,
  listBy,
  object,
  oneOf,
  optional,
  pointer,
  retainingKeys,
  text,
  time,
} from '../schema.ts'

const DeploymentConditionSchema = object('apps.v1.DeploymentCondition', {
  type: field(1, text),
  status: field(2, oneOf('True', 'False', 'Unknown')),
  lastUpdateTime: field(6, optional(time)),
  lastTransitionTime: field(7, optional(time)),
  reason: field(4, optional(text)),
  message: field(5, optional(text)),
})
export type DeploymentCondition = Described<typeof DeploymentConditionSchema>

const DeploymentStatusSchema = object('apps.v1.DeploymentStatus', {
  observedGeneration: field(1, optional(integer)),
  replicas: field(2, optional(integer)),
  updatedReplicas: field(3, optional(integer)),
  readyReplicas: field(7, optional(integer)),
  availableReplicas: field(4, optional(integer)),
  unavailableReplicas: field(5, optional(integer)),
  conditions: field(6, optional(listBy('type', DeploymentConditionSchema))),
  collisionCount: pointer(8, optional(integer)),
})
export type DeploymentStatus = Described<typeof DeploymentStatusSchema>

const DeploymentSpecSchema = object('apps.v1.DeploymentSpec', {
  replicas: pointer(1, optional(integer)),
  selector: field(2, optional(LabelSelectorSchema)),
  template: field(3, PodTemplateSpecSchema),
  strategy: field(
    4,
    optional(
      retainingKeys(
        object('apps.v1.DeploymentStrategy', {
          type: field(1, optional(text)),
          rollingUpdate: field(
            2,
            optional(
              object('apps.v1.RollingUpdateDeployment', {
                maxUnavailable: pointer(1, optional(intOrString)),
                maxSurge: pointer(2, optional(intOrString)),
              }),
            ),
          ),
        }),
      ),
    ),
  ),
  minReadySeconds: field(5, optional(integer)),
  revisionHistoryLimit: pointer(6, optional(integer)),
  paused: field(7, optional(bool)),
  progressDeadlineSeconds: pointer(9, optional(integer)),
})
export type DeploymentSpec = Described<typeof DeploymentSpecSchema>

export const DeploymentSchema = object({
  apiVersion: oneOf('apps/v1'),
  kind: oneOf('Deployment'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, DeploymentSpecSchema),
  status: field(3, optional(DeploymentStatusSchema)),
})
export type Deployment = Described<typeof DeploymentSchema>
