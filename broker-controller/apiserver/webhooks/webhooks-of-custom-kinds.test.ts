import { test } from 'tap'
import { patchTypes } from '../../testing/api-in-memory.ts'
import { aCustomApi, aDefinition, definitionsPath } from '../../testing/custom-api.ts'

const path = '/apis/example.com/v1/namespaces/default/shops'
const text = { type: 'string' }
const schema = { type: 'object', properties: { data: { type: 'object', properties: { start: text, stage1: text } } } }
const aShop = (name: string, data: object = {}) => ({
  apiVersion: 'example.com/v1',
  kind: 'Shop',
  metadata: { name },
  data: { start: 'yes', ...data },
})
const versionsStoredIn = (storage: string) =>
  ['v1', 'v2'].map((name) => ({ name, served: true, storage: name === storage, schema: { openAPIV3Schema: schema } }))

type Request = { readonly uid: string; readonly object?: { readonly data?: { readonly [field: string]: string } } }

/** An API whose custom objects get `stage1` from one webhook, and a field that nothing specifies; another denies `data.bad`. */
async function webhooked(t: Parameters<typeof aCustomApi>[0], versions: readonly string[] = ['v1']) {
  const api = await aCustomApi(t, async ({ body, client }) => {
    const { request } = JSON.parse(body) as { readonly request: Request }
    const operations = [
      { op: 'add', path: '/data/stage1', value: 'yes' },
      { op: 'add', path: '/data/unknown', value: 'yes' },
    ]
    const patch = Buffer.from(JSON.stringify(operations)).toString('base64')
    const isDenied = client.url?.endsWith('/deny') && request.object?.data?.['start'] !== 'yes'
    const status = { message: 'the object contains unwanted data', code: 403, reason: 'Forbidden' }
    return {
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: {
        uid: request.uid,
        allowed: !isDenied,
        ...(isDenied && { status }),
        ...(client.url?.endsWith('/mutate') && { patchType: 'JSONPatch', patch }),
      },
    }
  })
  const rules = [{ apiGroups: ['example.com'], apiVersions: versions, resources: ['shops'] }]
  const configure = (kind: 'Mutating' | 'Validating', name: string, operations: readonly string[]) =>
    api.ask('POST', `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}webhookconfigurations`, {
      body: {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: `${kind}WebhookConfiguration`,
        metadata: { name },
        webhooks: [
          {
            name: `${name}.example.com`,
            clientConfig: { url: `https://127.0.0.1:1/${name}` },
            rules: rules.map((rule) => ({ ...rule, operations })),
            sideEffects: 'None',
            admissionReviewVersions: ['v1'],
          },
        ],
      },
    })
  return { ...api, configure }
}

test('a validating webhook denies creation, update and deletion of custom resources', async (t) => {
  const { ask, define, configure } = await webhooked(t)
  await define(aDefinition(schema))
  t.match(await ask('POST', path, { body: aShop('a') }), { code: 201 })
  await configure('Validating', 'deny', ['CREATE', 'UPDATE', 'DELETE'])
  const denied = { code: 403, body: { message: /denied the request: the object contains unwanted data/ } }
  t.match(await ask('POST', path, { body: aShop('b', { start: 'no' }) }), denied)
  t.match(await ask('PATCH', `${path}/a`, { body: { data: { start: 'no' } }, type: patchTypes.merge }), denied)
  t.match(await ask('DELETE', `${path}/a`), denied)
  t.match(await ask('POST', path, { body: aShop('b') }), { code: 201 })
})

test('what a mutating webhook adds is pruned, also when the storage version changed since', async (t) => {
  const { ask, define, configure, until } = await webhooked(t, ['v1', 'v2'])
  await define(aDefinition({}, { versions: versionsStoredIn('v1') }))
  await configure('Mutating', 'mutate', ['CREATE', 'UPDATE'])
  const { code, body } = await ask('POST', path, { body: aShop('a') })
  t.match([code, body], [201, { data: { start: 'yes', stage1: 'yes' } }])
  t.notOk('unknown' in (body['data'] as object))
  const definition = `${definitionsPath}/shops.example.com`
  const versions = versionsStoredIn('v2')
  t.match(await ask('PATCH', definition, { body: { spec: { versions } }, type: patchTypes.merge }), { code: 200 })
  const v2 = '/apis/example.com/v2/namespaces/default/shops/a'
  await until(async () => (await ask('GET', v2)).code === 200)
  t.match(await ask('PATCH', v2, { body: { data: { stage1: 'no' } }, type: patchTypes.merge }), {
    code: 200,
    body: { apiVersion: 'example.com/v2', data: { start: 'yes', stage1: 'yes' } },
  })
  t.match(await ask('GET', `${path}/a`), { body: { apiVersion: 'example.com/v1', data: { stage1: 'yes' } } })
  t.match(await ask('GET', definition), { body: { status: { storedVersions: ['v1', 'v2'] } } })
})
