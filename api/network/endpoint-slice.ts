/** discovery.k8s.io/v1 EndpointSlice: a part of the addresses behind a Service. */
import { ObjectMetaSchema, ObjectReferenceSchema } from '../meta.ts'
import {
  atomic,
  bool,
  type Described,
  field,
  integer,
  list,
  mapOf,
  object,
  oneOf,
  optional,
  pointer,
  setOf,
  text,
} from '../schema.ts'

const namesOnly = optional(list(object({ name: field(1, text) })))

const EndpointSchema = object({
  addresses: field(1, setOf(text, { patch: 'whole' })),
  conditions: field(
    2,
    optional(
      object({
        ready: pointer(1, optional(bool)),
        serving: pointer(2, optional(bool)),
        terminating: pointer(3, optional(bool)),
      }),
    ),
  ),
  hostname: pointer(3, optional(text)),
  targetRef: field(4, optional(ObjectReferenceSchema)),
  deprecatedTopology: field(5, optional(mapOf(text))),
  nodeName: pointer(6, optional(text)),
  zone: pointer(7, optional(text)),
  hints: field(8, optional(object({ forZones: field(1, namesOnly), forNodes: field(2, namesOnly) }))),
})
export type Endpoint = Described<typeof EndpointSchema>

export const EndpointSliceSchema = object({
  apiVersion: oneOf('discovery.k8s.io/v1'),
  kind: oneOf('EndpointSlice'),
  metadata: field(1, ObjectMetaSchema),
  /** Go clients send null for none. */
  endpoints: field(2, optional(list(EndpointSchema))),
  ports: field(
    3,
    optional(
      list(
        atomic(
          object({
            name: pointer(1, optional(text)),
            protocol: pointer(2, optional(text)),
            port: pointer(3, optional(integer)),
            appProtocol: pointer(4, optional(text)),
          }),
        ),
      ),
    ),
  ),
  addressType: field(4, text),
})
export type EndpointSlice = Described<typeof EndpointSliceSchema>
