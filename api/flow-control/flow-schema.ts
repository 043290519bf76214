/** flowcontrol.apiserver.k8s.io/v1 FlowSchema: which requests belong to which priority level. */
import { ObjectMetaSchema } from '../meta.ts'
import { bool, type Described, field, integer, list, object, oneOf, optional, setOf, text } from '../schema.ts'
import { FlowControlStatusSchema } from './priority-level-configuration.ts'

const plainSet = setOf(text, { patch: 'whole' })
const named = optional(object({ name: field(1, text) }))

const FlowSubjectSchema = object({
  kind: field(1, text),
  user: field(2, named),
  group: field(3, named),
  serviceAccount: field(4, optional(object({ namespace: field(1, text), name: field(2, text) }))),
})
export type FlowSubject = Described<typeof FlowSubjectSchema>

const FlowRuleSchema = object({
  subjects: field(1, optional(list(FlowSubjectSchema))),
  resourceRules: field(
    2,
    optional(
      list(
        object({
          verbs: field(1, optional(plainSet)),
          apiGroups: field(2, optional(plainSet)),
          resources: field(3, optional(plainSet)),
          clusterScope: field(4, optional(bool)),
          namespaces: field(5, optional(plainSet)),
        }),
      ),
    ),
  ),
  nonResourceRules: field(
    3,
    optional(list(object({ verbs: field(1, optional(plainSet)), nonResourceURLs: field(6, optional(plainSet)) }))),
  ),
})
export type FlowRule = Described<typeof FlowRuleSchema>

export const FlowSchemaSchema = object({
  apiVersion: oneOf('flowcontrol.apiserver.k8s.io/v1'),
  kind: oneOf('FlowSchema'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(
    2,
    optional(
      object({
        priorityLevelConfiguration: field(1, optional(object({ name: field(1, text) }))),
        matchingPrecedence: field(2, optional(integer)),
        distinguisherMethod: field(3, optional(object({ type: field(1, text) }))),
        rules: field(4, optional(list(FlowRuleSchema))),
      }),
    ),
  ),
  status: field(3, optional(FlowControlStatusSchema)),
})
export type FlowSchema = Described<typeof FlowSchemaSchema>
