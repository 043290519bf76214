/** apps/v1 StatefulSet: pods with names that stay, each of which exists at most once. */
import { LabelSelectorSchema, ObjectMetaSchema } from '../meta.ts'
import { PodTemplateSpecSchema } from '../pod.ts'
import {
  type Described,
  field,
  integer,
  intOrString,
  list,
  listBy,
  object,
  oneOf,
  optional,
  pointer,
  text,
} from '../schema.ts'
import { StatefulClaimSchema } from '../storage/persistent-volume-claim.ts'
import { conditionFields } from './condition-fields.ts'

const StatefulSetConditionSchema = object('apps.v1.StatefulSetCondition', conditionFields)

/** Label of a pod of a StatefulSet, with the pod's own name (staging/src/k8s.io/api/apps/v1/types.go, StatefulSetPodNameLabel). */
export const podNameLabel = 'statefulset.kubernetes.io/pod-name'

const StatefulSetStatusSchema = object('apps.v1.StatefulSetStatus', {
  observedGeneration: field(1, optional(integer)),
  replicas: field(2, optional(integer)),
  readyReplicas: field(3, optional(integer)),
  currentReplicas: field(4, optional(integer)),
  updatedReplicas: field(5, optional(integer)),
  currentRevision: field(6, optional(text)),
  updateRevision: field(7, optional(text)),
  collisionCount: pointer(9, optional(integer)),
  conditions: field(10, optional(listBy('type', StatefulSetConditionSchema))),
  availableReplicas: field(11, optional(integer)),
})
export type StatefulSetStatus = Described<typeof StatefulSetStatusSchema>

export const StatefulSetSpecSchema = object('apps.v1.StatefulSetSpec', {
  replicas: pointer(1, optional(integer)),
  selector: field(2, optional(LabelSelectorSchema)),
  template: field(3, PodTemplateSpecSchema),
  volumeClaimTemplates: field(4, optional(list(StatefulClaimSchema))),
  serviceName: field(5, optional(text)),
  podManagementPolicy: field(6, optional(text)),
  updateStrategy: field(
    7,
    optional(
      object('apps.v1.StatefulSetUpdateStrategy', {
        type: field(1, optional(text)),
        rollingUpdate: field(
          2,
          optional(
            object('apps.v1.RollingUpdateStatefulSetStrategy', {
              partition: pointer(1, optional(integer)),
              maxUnavailable: pointer(2, optional(intOrString)),
            }),
          ),
        ),
      }),
    ),
  ),
  revisionHistoryLimit: pointer(8, optional(integer)),
  minReadySeconds: field(9, optional(integer)),
  persistentVolumeClaimRetentionPolicy: field(
    10,
    optional(
      object('apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy', {
        whenDeleted: field(1, optional(text)),
        whenScaled: field(2, optional(text)),
      }),
    ),
  ),
  ordinals: field(11, optional(object('apps.v1.StatefulSetOrdinals', { start: field(1, optional(integer)) }))),
})
export type StatefulSetSpec = Described<typeof StatefulSetSpecSchema>

export const StatefulSetSchema = object({
  apiVersion: oneOf('apps/v1'),
  kind: oneOf('StatefulSet'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, StatefulSetSpecSchema),
  status: field(3, optional(StatefulSetStatusSchema)),
})
export type StatefulSet = Described<typeof StatefulSetSchema>
