import { test } from 'tap'
import { anApi, patchTypes } from '../../testing/api-in-memory.ts'
import { configMapsPath, podsPath, sentMap, sentPod } from '../../testing/sent-objects.ts'

test('a body may be YAML', async (t) => {
  const { ask } = await anApi(t)
  const body = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: "1"}\n'
  t.match(await ask('POST', configMapsPath, { body, type: 'application/yaml' }), {
    code: 201,
    body: { data: { a: '1' } },
  })
})

test('a key that YAML gives twice is refused in strict requests', async (t) => {
  const { ask } = await anApi(t)
  const body = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata:\n  a: "1"\n  a: "2"\n'
  const message = /strict decoding error: line 6: key "a" already set in map$/
  const type = 'application/yaml'
  const strict = `${configMapsPath}?fieldValidation=Strict`
  t.match(await ask('POST', strict, { body, type }), { code: 400, body: { message } })
  t.match(await ask('POST', configMapsPath, { body, type }), { code: 201, body: { data: { a: '2' } } })
  t.match(await ask('PUT', `${configMapsPath}/settings?fieldValidation=Strict`, { body, type }), {
    code: 400,
    body: { message },
  })
})

test('a body that cannot be parsed is rejected with the reason', async (t) => {
  const { ask } = await anApi(t)
  const post = (body: unknown, type?: string) =>
    ask('POST', configMapsPath, { body, ...(type !== undefined && { type }) })
  t.match(await post('{'), { code: 400, body: { reason: 'BadRequest' } })
  t.match(await post([]), { code: 400, body: { message: /the body must be an object/ } })
  t.match(await post({ ...sentMap(), kind: 'Secret' }), {
    code: 400,
    body: { message: /cannot be handled as a ConfigMap/ },
  })
  t.match(await post(sentMap({}, { namespace: 'other' })), {
    code: 400,
    body: { message: /does not match the namespace/ },
  })
  t.match(await post(sentMap(), 'application/vnd.kubernetes.protobuf'), { code: 415 })
  t.match(await post(sentMap({ data: { a: 1 } })), {
    code: 422,
    body: { reason: 'Invalid', details: { name: 'settings', kind: 'ConfigMap', causes: [{ field: /data/ }] } },
  })
  t.match(await ask('POST', podsPath, { body: sentPod('web', { containers: [] }) }), {
    code: 422,
    body: { details: { kind: 'Pod', causes: [{ field: 'spec.containers' }] } },
  })
})

test('a body that leaves out kind and apiVersion is read as the object of the path', async (t) => {
  const { ask } = await anApi(t)
  const whole = { kind: 'ConfigMap', apiVersion: 'v1' }
  t.match(await ask('POST', configMapsPath, { body: { metadata: { name: 'a' } } }), { code: 201, body: whole })
  t.match(await ask('POST', configMapsPath, { body: { kind: '', apiVersion: '', metadata: { name: 'b' } } }), {
    code: 201,
    body: whole,
  })
  t.match(await ask('PUT', `${configMapsPath}/a`, { body: { metadata: { name: 'a' }, data: { x: '1' } } }), {
    code: 200,
    body: { ...whole, data: { x: '1' } },
  })
  t.match(await ask('POST', configMapsPath, { body: { apiVersion: 'apps/v1', metadata: { name: 'c' } } }), {
    code: 400,
    body: { message: /a ConfigMap in version "apps\/v1", not a ConfigMap in version "v1"/ },
  })
})

test('fieldValidation: unknown fields are rejected, reported as warnings, or dropped', async (t) => {
  const { ask } = await anApi(t)
  const body = sentMap({ bogus: 1 })
  t.match(await ask('POST', `${configMapsPath}?fieldValidation=Strict`, { body }), {
    code: 400,
    body: {
      message:
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "bogus"',
    },
  })
  const ignored = await ask('POST', `${configMapsPath}?fieldValidation=Ignore&dryRun=All`, { body })
  t.match(ignored, { code: 201, warnings: [], body: { bogus: undefined } })
  t.match(await ask('POST', configMapsPath, { body }), { code: 201, warnings: ['unknown field "bogus"'] })
})

test('fieldValidation: fields that are given twice are rejected, reported as warnings, or not looked for', async (t) => {
  const { ask } = await anApi(t)
  const text = (name: string, more = '') =>
    `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"${name}"},"data":{"a":"1","b":"1","a":"2"}${more}}`
  const type = 'application/json'
  const bogus = ',"bogus":{"x":1,"x":2},"bogus":3,"immutable":false,"immutable":false'
  t.match(await ask('POST', `${configMapsPath}?fieldValidation=Strict`, { body: text('one', bogus), type }), {
    code: 400,
    body: {
      message:
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "bogus", ' +
        'duplicate field "data.a", duplicate field "immutable"',
    },
  })
  t.match(await ask('POST', `${configMapsPath}?fieldValidation=Ignore`, { body: text('one'), type }), {
    code: 201,
    warnings: [],
    body: { data: { a: '2', b: '1' } },
  })
  const twice = ['duplicate field "data.a"']
  t.match(await ask('POST', configMapsPath, { body: text('two'), type }), { code: 201, warnings: twice })
  t.match(await ask('PUT', `${configMapsPath}/two`, { body: text('two'), type }), { code: 200, warnings: twice })
  for (const form of ['merge', 'strategic-merge']) {
    const patch = { body: '{"data":{"a":"1","a":"3"}}', type: `application/${form}-patch+json` }
    t.match(await ask('PATCH', `${configMapsPath}/two`, patch), {
      code: 200,
      warnings: twice,
      body: { data: { a: '3' } },
    })
    t.match(await ask('PATCH', `${configMapsPath}/two?fieldValidation=Strict`, patch), { code: 400 }, form)
    t.match(await ask('PATCH', `${configMapsPath}/two?fieldValidation=Ignore`, patch), { code: 200, warnings: [] })
  }
})

test('generateName generates a name', async (t) => {
  const { ask } = await anApi(t)
  const { body } = await ask('POST', configMapsPath, { body: sentMap({}, { name: undefined, generateName: 'job-' }) })
  t.match(body, { metadata: { name: /^job-[bcdfghjklmnpqrstvwxz2456789]{5}$/, generateName: 'job-' } })
})

test('nothing is created in a namespace that does not exist or is being terminated', async (t) => {
  const { ask } = await anApi(t)
  t.match(await ask('POST', '/api/v1/namespaces/nowhere/configmaps', { body: sentMap() }), {
    code: 404,
    body: { message: 'namespaces "nowhere" not found' },
  })
  await ask('POST', '/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } } })
  const going = await ask('DELETE', '/api/v1/namespaces/team')
  t.match(going, { code: 200, body: { status: { phase: 'Terminating' }, metadata: { deletionTimestamp: /Z$/ } } })
  const late = await ask('POST', '/api/v1/namespaces/team/configmaps', { body: sentMap() })
  t.match(late, { code: 403, body: { message: /^configmaps ".+" is forbidden: .* it is being terminated/ } })
  t.match(await ask('DELETE', '/api/v1/namespaces/kube-system'), { code: 403 })
})

test('an invalid list of revoked certificates is rejected', async (t) => {
  const { ask } = await anApi(t)
  const path = '/api/v1/namespaces/kube-system/configmaps'
  const list = (revoked: string) => ({ body: sentMap({ data: { revoked } }, { name: 'bramble-revoked-certificates' }) })
  t.match(await ask('POST', path, list('yesterday system:node:pi-3')), {
    code: 422,
    body: { message: /data\[revoked\].*not \\?"TIME USER REASON/ },
  })
  t.match(await ask('POST', path, list('2026-01-01T00:00:00Z system:node:pi-3 Stolen')), { code: 201 })
})

test('a pod with an unknown priority class is rejected', async (t) => {
  const { ask } = await anApi(t)
  const classes = '/apis/scheduling.k8s.io/v1/priorityclasses'
  const aClass = (name: string, value: number, more: object = {}) => ({
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name },
    value,
    ...more,
  })
  t.match(await ask('POST', classes, { body: aClass('high', 1000) }), {
    code: 201,
    body: { preemptionPolicy: 'PreemptLowerPriority' },
  })
  t.match(await ask('POST', podsPath, { body: sentPod('web', { priorityClassName: 'high' }) }), {
    code: 201,
    body: { spec: { priority: 1000 } },
  })
  t.match(await ask('POST', podsPath, { body: sentPod('x', { priorityClassName: 'low' }) }), {
    code: 403,
    body: { message: 'pods "x" is forbidden: no PriorityClass with name low was found' },
  })
  t.match(await ask('POST', classes, { body: aClass('usual', 5, { globalDefault: true }) }), { code: 201 })
  const patch = { body: { globalDefault: true }, type: patchTypes.merge }
  t.match(await ask('PATCH', `${classes}/high`, patch), {
    code: 403,
    body: { message: /PriorityClass usual is already marked as default/ },
  })
})
