/** networking.k8s.io/v1 Ingress: rules by which an ingress controller leads requests to Services. */
import { ObjectMetaSchema } from '../meta.ts'
import {
  atomic,
  type Described,
  field,
  inside,
  integer,
  list,
  object,
  oneOf,
  optional,
  pointer,
  text,
} from '../schema.ts'

export const networkingGroup = 'networking.k8s.io'

const IngressBackendSchema = object('networking.v1.IngressBackend', {
  resource: pointer(
    3,
    optional(
      atomic(
        object('core.v1.TypedLocalObjectReference', {
          apiGroup: pointer(1, optional(text)),
          kind: field(2, text),
          name: field(3, text),
        }),
      ),
    ),
  ),
  service: pointer(
    4,
    optional(
      object('networking.v1.IngressServiceBackend', {
        name: field(1, text),
        port: field(
          2,
          optional(
            atomic(
              object('networking.v1.ServiceBackendPort', {
                name: field(1, optional(text)),
                number: field(2, optional(integer)),
              }),
            ),
          ),
        ),
      }),
    ),
  ),
})
export type IngressBackend = Described<typeof IngressBackendSchema>

const HTTPIngressPathSchema = object('networking.v1.HTTPIngressPath', {
  path: field(1, optional(text)),
  backend: field(2, IngressBackendSchema),
  pathType: pointer(3, optional(text)),
})
export type HTTPIngressPath = Described<typeof HTTPIngressPathSchema>

const IngressRuleSchema = object('networking.v1.IngressRule', {
  host: field(1, optional(text)),
  ...inside(2, {
    http: pointer(
      1,
      optional(object('networking.v1.HTTPIngressRuleValue', { paths: field(1, list(HTTPIngressPathSchema)) })),
    ),
  }),
})
export type IngressRule = Described<typeof IngressRuleSchema>

const IngressTLSSchema = object('networking.v1.IngressTLS', {
  hosts: field(1, optional(list(text))),
  secretName: field(2, optional(text)),
})
export type IngressTLS = Described<typeof IngressTLSSchema>

const IngressSpecSchema = object('networking.v1.IngressSpec', {
  defaultBackend: pointer(1, optional(IngressBackendSchema)),
  tls: field(2, optional(list(IngressTLSSchema))),
  rules: field(3, optional(list(IngressRuleSchema))),
  ingressClassName: pointer(4, optional(text)),
})
export type IngressSpec = Described<typeof IngressSpecSchema>

const IngressLoadBalancerIngressSchema = object('networking.v1.IngressLoadBalancerIngress', {
  ip: field(1, optional(text)),
  hostname: field(2, optional(text)),
  ports: field(
    4,
    optional(
      list(
        object('networking.v1.IngressPortStatus', {
          port: field(1, integer),
          protocol: field(2, text),
          error: pointer(3, optional(text)),
        }),
      ),
    ),
  ),
})

export const IngressSchema = object({
  apiVersion: oneOf('networking.k8s.io/v1'),
  kind: oneOf('Ingress'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, optional(IngressSpecSchema)),
  status: field(
    3,
    optional(
      object('networking.v1.IngressStatus', {
        loadBalancer: field(
          1,
          optional(
            object('networking.v1.IngressLoadBalancerStatus', {
              ingress: field(1, optional(list(IngressLoadBalancerIngressSchema))),
            }),
          ),
        ),
      }),
    ),
  ),
})
export type Ingress = Described<typeof IngressSchema>
