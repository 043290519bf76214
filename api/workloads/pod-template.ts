/** core/v1 PodTemplate: a template of pods as an object of its own. */
import { ObjectMetaSchema } from '../meta.ts'
import { PodTemplateSpecSchema } from '../pod.ts'
import { type Described, field, object, oneOf } from '../schema.ts'

export const PodTemplateSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('PodTemplate'),
  metadata: field(1, ObjectMetaSchema),
  template: field(2, PodTemplateSpecSchema),
})
export type PodTemplate = Described<typeof PodTemplateSchema>
