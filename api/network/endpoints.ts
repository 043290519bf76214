/** core/v1 Endpoints: the addresses behind a Service. Deprecated in favour of EndpointSlice, and still read by clients. */
import { ObjectMetaSchema, ObjectReferenceSchema } from '../meta.ts'
import { atomic, type Described, field, integer, list, object, oneOf, optional, pointer, text } from '../schema.ts'

const EndpointAddressSchema = atomic(
  object({
    ip: field(1, text),
    targetRef: field(2, optional(ObjectReferenceSchema)),
    hostname: field(3, optional(text)),
    nodeName: pointer(4, optional(text)),
  }),
)
export type EndpointAddress = Described<typeof EndpointAddressSchema>

const EndpointSubsetSchema = object({
  addresses: field(1, optional(list(EndpointAddressSchema))),
  notReadyAddresses: field(2, optional(list(EndpointAddressSchema))),
  ports: field(
    3,
    optional(
      list(
        atomic(
          object({
            name: field(1, optional(text)),
            port: field(2, integer),
            protocol: field(3, optional(text)),
            appProtocol: pointer(4, optional(text)),
          }),
        ),
      ),
    ),
  ),
})
export type EndpointSubset = Described<typeof EndpointSubsetSchema>

export const EndpointsSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('Endpoints'),
  metadata: field(1, ObjectMetaSchema),
  subsets: field(2, optional(list(EndpointSubsetSchema))),
})
export type Endpoints = Described<typeof EndpointsSchema>
