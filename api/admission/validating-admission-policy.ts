/** admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy: expressions that judge what is written. */
import { ObjectMetaSchema } from '../meta.ts'
import {
  atomic,
  type Described,
  field,
  integer,
  list,
  listBy,
  object,
  oneOf,
  optional,
  pointer,
  text,
  time,
} from '../schema.ts'
import { MatchResourcesSchema } from './match-resources.ts'
import { MatchConditionSchema } from './webhook.ts'

const ParamKindSchema = atomic(
  object('admissionregistration.v1.ParamKind', {
    apiVersion: field(1, optional(text)),
    kind: field(2, optional(text)),
  }),
)
export type ParamKind = Described<typeof ParamKindSchema>

const ValidationSchema = object('admissionregistration.v1.Validation', {
  expression: field(1, text),
  message: field(2, optional(text)),
  reason: pointer(3, optional(text)),
  messageExpression: field(4, optional(text)),
})
export type PolicyValidation = Described<typeof ValidationSchema>

const AuditAnnotationSchema = object('admissionregistration.v1.AuditAnnotation', {
  key: field(1, text),
  valueExpression: field(2, text),
})
export type PolicyAuditAnnotation = Described<typeof AuditAnnotationSchema>

const VariableSchema = atomic(
  object('admissionregistration.v1.Variable', { name: field(1, text), expression: field(2, text) }),
)
export type PolicyVariable = Described<typeof VariableSchema>

const SpecSchema = object('admissionregistration.v1.ValidatingAdmissionPolicySpec', {
  paramKind: field(1, optional(ParamKindSchema)),
  matchConstraints: field(2, optional(MatchResourcesSchema)),
  validations: field(3, optional(list(ValidationSchema))),
  failurePolicy: pointer(4, optional(text)),
  auditAnnotations: field(5, optional(list(AuditAnnotationSchema))),
  matchConditions: field(6, optional(listBy('name', MatchConditionSchema))),
  variables: field(7, optional(listBy('name', VariableSchema))),
})
export type AdmissionPolicySpec = Described<typeof SpecSchema>

const ExpressionWarningSchema = object('admissionregistration.v1.ExpressionWarning', {
  fieldRef: field(2, text),
  warning: field(3, text),
})
export type ExpressionWarning = Described<typeof ExpressionWarningSchema>

const StatusSchema = object('admissionregistration.v1.ValidatingAdmissionPolicyStatus', {
  observedGeneration: field(1, optional(integer)),
  typeChecking: field(
    2,
    optional(
      object('admissionregistration.v1.TypeChecking', {
        expressionWarnings: field(1, optional(list(ExpressionWarningSchema))),
      }),
    ),
  ),
  conditions: field(
    3,
    optional(
      listBy(
        'type',
        object('meta.v1.Condition', {
          type: field(1, text),
          status: field(2, text),
          observedGeneration: field(3, optional(integer)),
          lastTransitionTime: field(4, time),
          reason: field(5, text),
          message: field(6, text),
        }),
        { patch: 'whole' },
      ),
    ),
  ),
})
export type AdmissionPolicyStatus = Described<typeof StatusSchema>

export const ValidatingAdmissionPolicySchema = object({
  apiVersion: oneOf('admissionregistration.k8s.io/v1'),
  kind: oneOf('ValidatingAdmissionPolicy'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, optional(SpecSchema)),
  status: field(3, optional(StatusSchema)),
})
export type ValidatingAdmissionPolicy = Described<typeof ValidatingAdmissionPolicySchema>
