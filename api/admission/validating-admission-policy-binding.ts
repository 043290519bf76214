/** admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding: where a policy applies, with which parameters, and what follows. */
import { LabelSelectorSchema, ObjectMetaSchema } from '../meta.ts'
import { atomic, type Described, field, object, oneOf, optional, pointer, setOf, text } from '../schema.ts'
import { MatchResourcesSchema } from './match-resources.ts'

const ParamRefSchema = atomic(
  object('admissionregistration.v1.ParamRef', {
    name: field(1, optional(text)),
    namespace: field(2, optional(text)),
    selector: field(3, optional(LabelSelectorSchema)),
    parameterNotFoundAction: pointer(4, optional(text)),
  }),
)
export type ParamRef = Described<typeof ParamRefSchema>

const SpecSchema = object('admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec', {
  policyName: field(1, optional(text)),
  paramRef: field(2, optional(ParamRefSchema)),
  matchResources: field(3, optional(MatchResourcesSchema)),
  validationActions: field(4, optional(setOf(text, { patch: 'whole' }))),
})
export type PolicyBindingSpec = Described<typeof SpecSchema>

export const ValidatingAdmissionPolicyBindingSchema = object({
  apiVersion: oneOf('admissionregistration.k8s.io/v1'),
  kind: oneOf('ValidatingAdmissionPolicyBinding'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, optional(SpecSchema)),
})
export type ValidatingAdmissionPolicyBinding = Described<typeof ValidatingAdmissionPolicyBindingSchema>
