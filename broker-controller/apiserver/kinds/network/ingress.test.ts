import { test } from 'tap'
import type { Ingress, IngressBackend } from '../../../../api/network/ingress.ts'
import type { IngressClass } from '../../../../api/network/ingress-class.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { anApi } from '../../../testing/api-in-memory.ts'
import { defaultIngressClass } from './ingress.ts'

const web: IngressBackend = { service: { name: 'web', port: { number: 80 } } }
const ingress = (spec: NonNullable<Ingress['spec']>, annotations = {}): Ingress => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { name: 'site', namespace: 'default', annotations },
  spec,
})
const ofBackend = (defaultBackend: IngressBackend) => ingress({ defaultBackend })
const ingressClass = (spec: IngressClass['spec'], metadata: IngressClass['metadata'] = {}): IngressClass => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'IngressClass',
  metadata: { name: 'public', ...metadata },
  spec: { controller: 'example.com/gate', ...spec },
})
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'

test('an ingress is created, listed and given an address by its controller', async (t) => {
  const { ask } = await anApi(t)
  const path = '/apis/networking.k8s.io/v1/namespaces/default/ingresses'
  const rules = ['a', 'b', 'c', 'd', 'e'].map((letter) => ({ host: `${letter}.example` }))
  const claimed = { ...ingress({ rules, tls: [{ hosts: ['*.example'] }] }), status: { loadBalancer: {} } }
  const made = await ask('POST', path, { body: claimed })
  t.equal(made.code, 201)
  t.match(made.body, { metadata: { generation: 1 }, status: { loadBalancer: { ingress: undefined } } })
  const status = { loadBalancer: { ingress: [{ ip: '192.0.2.9' }, { hostname: 'gate.example' }, { ip: '192.0.2.9' }] } }
  const patched = await ask('PATCH', `${path}/site/status`, {
    body: { status },
    type: 'application/merge-patch+json',
  })
  t.match(patched, { code: 200, body: { metadata: { generation: 1 }, status } })
  const { body } = await ask('GET', path, { accept: table })
  t.match(body, {
    columnDefinitions: ['Name', 'Class', 'Hosts', 'Address', 'Ports', 'Age'].map((name) => ({ name })),
    rows: [
      { cells: ['site', '<none>', 'a.example,b.example,c.example + 2 more...', '192.0.2.9,gate.example', '80, 443'] },
    ],
  })
})

test('an ingress without hosts or TLS is shown with * and 80', async (t) => {
  const { ask } = await anApi(t)
  const path = '/apis/networking.k8s.io/v1/namespaces/default/ingresses'
  t.equal((await ask('POST', path, { body: ofBackend(web) })).code, 201)
  const three = { rules: ['a', '', 'b', 'c'].map((host) => ({ host })) }
  t.equal((await ask('POST', path, { body: { ...ingress(three), metadata: { name: 'three' } } })).code, 201)
  const { body } = await ask('GET', path, { accept: table })
  t.match(body, {
    rows: [{ cells: ['site', '<none>', '*', '', '80'] }, { cells: ['three', '<none>', 'a,b,c', '', '80'] }],
  })
})

test('a class is created and listed, and its controller stays', async (t) => {
  const { ask } = await anApi(t)
  const path = '/apis/networking.k8s.io/v1/ingressclasses'
  const parameters = { apiGroup: 'example.com', kind: 'Gate', name: 'front' }
  const made = await ask('POST', path, { body: ingressClass({ parameters }) })
  t.match(made, { code: 201, body: { spec: { parameters: { ...parameters, scope: 'Cluster' } } } })
  const { body } = await ask('GET', path, { accept: table })
  t.match(body, {
    columnDefinitions: ['Name', 'Controller', 'Parameters', 'Age'].map((name) => ({ name })),
    rows: [{ cells: ['public', 'example.com/gate', 'Gate.example.com/front'] }],
  })
  const before = create('ingressclasses', ingressClass({}))
  t.match(
    causes(() => update('ingressclasses', before, ingressClass({ controller: 'example.com/other' }))),
    ['spec.controller: Invalid value: "example.com/other": field is immutable'],
  )
  t.match(update('ingressclasses', before, ingressClass({ parameters })).metadata.name, 'public')
})

test('an ingress without a class gets the default class', async (t) => {
  const { ask } = await anApi(t)
  const classes = '/apis/networking.k8s.io/v1/ingressclasses'
  const isDefault = { annotations: { 'ingressclass.kubernetes.io/is-default-class': 'true' } }
  await ask('POST', classes, { body: ingressClass({}, { name: 'plain' }) })
  await ask('POST', classes, { body: ingressClass({}, { name: 'usual', ...isDefault }) })
  const path = '/apis/networking.k8s.io/v1/namespaces/default/ingresses'
  const classOf = async (one: Ingress, name: string) => {
    const { body } = await ask('POST', path, { body: { ...one, metadata: { ...one.metadata, name } } })
    return (body as Ingress).spec?.ingressClassName
  }
  t.equal(await classOf(ofBackend(web), 'a'), 'usual')
  t.equal(await classOf(ingress({ defaultBackend: web, ingressClassName: 'plain' }), 'b'), 'plain')
  t.equal(await classOf(ingress({ defaultBackend: web }, { 'kubernetes.io/ingress.class': 'old' }), 'c'), undefined)
})

test('of several default classes the newest is chosen, and of those the first by name', (t) => {
  const annotations = { 'ingressclass.kubernetes.io/is-default-class': 'true' }
  const made = (name: string, second: number, more = {}) =>
    ingressClass({}, { name, creationTimestamp: `2026-01-01T00:00:0${second}Z`, annotations, ...more })
  t.equal(defaultIngressClass([]), undefined)
  t.equal(defaultIngressClass([made('a', 1), made('b', 2)]), 'b')
  t.equal(defaultIngressClass([made('b', 2), made('a', 1)]), 'b')
  t.equal(defaultIngressClass([made('c', 2), made('b', 2), made('a', 1)]), 'b')
  t.equal(defaultIngressClass([made('b', 2), made('c', 2)]), 'b')
  t.equal(defaultIngressClass([made('a', 1), made('b', 2, { annotations: {} })]), 'a')
  t.end()
})
