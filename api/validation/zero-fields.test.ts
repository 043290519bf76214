import { test } from 'tap'
import { type PodTemplateSpec, PodTemplateSpecSchema } from '../pod.ts'
import { bool, field, intOrString, list, mapOf, object, optional, text } from '../schema.ts'
import { withoutZeros } from './zero-fields.ts'

const template = (spec: Partial<PodTemplateSpec['spec']>): PodTemplateSpec => ({ spec: { containers: [], ...spec } })
const specOf = (spec: Partial<PodTemplateSpec['spec']>) => withoutZeros(PodTemplateSpecSchema, template(spec)).spec

test('what Go would not write is left out, wherever it is', async (t) => {
  const container = { name: 'main', image: 'nginx:1.27' }
  t.same(
    specOf({
      hostname: '',
      hostNetwork: false,
      nodeSelector: {},
      tolerations: [],
      volumes: [{ name: 'tmp', emptyDir: { medium: '' } }],
      containers: [
        {
          ...container,
          env: [{ name: 'A', value: '' }],
          envFrom: [],
          stdin: false,
          ports: [{ containerPort: 80, hostPort: 0, name: '' }],
          readinessProbe: { initialDelaySeconds: 0, httpGet: { port: 80, path: '' } },
          resources: { limits: {} },
        },
      ],
    }),
    {
      volumes: [{ name: 'tmp', emptyDir: {} }],
      containers: [
        {
          ...container,
          env: [{ name: 'A' }],
          ports: [{ containerPort: 80 }],
          readinessProbe: { httpGet: { port: 80 } },
          resources: {},
        },
      ],
    },
  )
  t.same(withoutZeros(PodTemplateSpecSchema, { metadata: { labels: {}, name: '' }, spec: { containers: [] } }), {
    metadata: {},
    spec: { containers: [] },
  })
})

test('a zero that is a choice stays', async (t) => {
  const choices = {
    terminationGracePeriodSeconds: 0,
    automountServiceAccountToken: false,
    tolerations: [{ operator: 'Exists', tolerationSeconds: 0 }],
    containers: [{ name: 'main', image: 'a', securityContext: { runAsUser: 0, privileged: false } }],
    affinity: {},
    securityContext: {},
  }
  t.same(specOf(choices), choices)
})

test('a field that is required stays, also when it is empty', async (t) => {
  const required = {
    containers: [{ name: '', livenessProbe: { httpGet: { port: 0, httpHeaders: [{ name: 'X-Empty', value: '' }] } } }],
  }
  t.same(specOf(required), required)
})

test('null is not a value, also of a pointer', async (t) => {
  const given = {
    automountServiceAccountToken: null,
    hostname: null,
    containers: [],
  } as unknown as PodTemplateSpec['spec']
  t.same(specOf(given), { containers: [] })
})

test('of a number that may be a text 0 stays, and a map with a value, and a field without a number', async (t) => {
  const schema = object({
    share: field(1, optional(intOrString)),
    labels: field(2, optional(mapOf(text))),
    plain: optional(text),
    items: field(3, optional(list(object({ on: field(1, optional(bool)) })))),
  })
  t.same(withoutZeros(schema, { share: 0, labels: { a: '' }, plain: '', items: [{ on: false }, { on: true }] }), {
    share: 0,
    labels: { a: '' },
    items: [{}, { on: true }],
  })
  t.same(Object.keys(withoutZeros(schema, { share: undefined, plain: 'x' })), ['plain'])
})
