import { test } from 'tap'
import { encodeToken } from '../../../api/node/bootstrap-token.ts'
import { anApi, type Document } from '../../testing/api-in-memory.ts'
import { tokenIssuer } from '../authentication/tokens/service-account-tokens.ts'

const authorization = '/apis/authorization.k8s.io/v1'
const authentication = '/apis/authentication.k8s.io/v1'
const asking = { verb: 'get', resource: 'pods', namespace: 'default' }
const eve = { user: 'eve', groups: [] }

test('questions about access are answered for the user they name', async (t) => {
  const { ask } = await anApi(t)
  const review = async (kind: string, spec: Document, more: { as?: typeof eve; path?: string } = {}) => {
    const path = more.path ?? `${authorization}/${kind.toLowerCase()}s`
    return ask('POST', path, {
      body: { kind, apiVersion: 'authorization.k8s.io/v1', spec },
      ...(more.as && { as: more.as }),
    })
  }
  t.match(await review('SelfSubjectAccessReview', { resourceAttributes: asking }), {
    code: 201,
    body: { kind: 'SelfSubjectAccessReview', spec: { resourceAttributes: asking }, status: { allowed: true } },
  })
  t.match(await review('SubjectAccessReview', { user: 'eve', resourceAttributes: asking }), {
    body: { status: { allowed: false } },
  })
  const node = { user: 'system:node:pi', groups: ['system:nodes'] }
  const onNode = {
    ...asking,
    verb: 'list',
    fieldSelector: { requirements: [{ key: 'spec.nodeName', operator: 'In', values: ['pi'] }] },
  }
  t.match(await review('SubjectAccessReview', { ...node, resourceAttributes: onNode }), {
    body: { status: { allowed: true } },
  })
  t.match(await review('SubjectAccessReview', { ...node, resourceAttributes: { ...asking, verb: 'list' } }), {
    body: { status: { allowed: false } },
  })
  t.match(
    await review('SubjectAccessReview', { user: 'eve', nonResourceAttributes: { verb: 'get', path: '/healthz' } }),
    {
      body: { status: { allowed: true } },
    },
  )
  const local = `${authorization}/namespaces/default/localsubjectaccessreviews`
  t.match(await review('LocalSubjectAccessReview', { user: 'eve', resourceAttributes: asking }, { path: local }), {
    code: 201,
    body: { metadata: { namespace: 'default' }, status: { allowed: false } },
  })
})

test('the answer to a review is not a Table', async (t) => {
  const { ask } = await anApi(t)
  const body = {
    kind: 'SelfSubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    spec: { resourceAttributes: asking },
  }
  const path = `${authorization}/selfsubjectaccessreviews`
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
  t.match(await ask('POST', path, { body, accept }), { code: 406, body: { reason: 'NotAcceptable' } })
  t.match(await ask('POST', path, { body, accept: `${accept},application/json` }), { code: 201 })
})

test('an invalid review is refused with the fields at fault', async (t) => {
  const { ask } = await anApi(t)
  const refusal = async (kind: string, spec: Document, metadata?: Document) => {
    const inNamespace = kind.startsWith('Local') ? 'namespaces/default/' : ''
    const path = `${authorization}/${inNamespace}${kind.toLowerCase()}s`
    const { code, body } = await ask('POST', path, {
      body: { kind, apiVersion: 'authorization.k8s.io/v1', spec, ...(metadata && { metadata }) },
    })
    t.equal(code, 422)
    return body['message']
  }
  t.match(
    await refusal('SelfSubjectAccessReview', {}),
    'exactly one of nonResourceAttributes or resourceAttributes must be specified',
  )
  t.match(
    await refusal('SelfSubjectAccessReview', { resourceAttributes: asking, nonResourceAttributes: { path: '/' } }),
    'cannot be specified in combination with resourceAttributes',
  )
  t.match(
    await refusal('SubjectAccessReview', { resourceAttributes: asking }),
    'at least one of user or group must be specified',
  )
  t.match(
    await refusal('SubjectAccessReview', { user: 'eve', resourceAttributes: asking }, { name: 'x' }),
    'metadata: Invalid value',
  )
  t.match(
    await refusal('LocalSubjectAccessReview', { user: 'eve', resourceAttributes: { ...asking, namespace: 'other' } }),
    'must match metadata.namespace',
  )
  t.match(
    await refusal('LocalSubjectAccessReview', { user: 'eve', nonResourceAttributes: { path: '/' } }),
    'disallowed on this kind of request',
  )
})

test('reviews are created, by those who may, and cannot be read', async (t) => {
  const { ask } = await anApi(t)
  t.match(await ask('GET', `${authorization}/selfsubjectaccessreviews`), { code: 405 })
  t.match(await ask('POST', `${authorization}/subjectaccessreviews`, { as: eve, body: {} }), {
    code: 403,
    body: {
      message:
        'subjectaccessreviews.authorization.k8s.io is forbidden: User "eve" cannot create resource "subjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope',
    },
  })
  t.match(await ask('GET', authorization), { body: { groupVersion: 'authorization.k8s.io/v1' } })
  const { body } = await ask('GET', authentication)
  t.match(body['resources'], [{ name: 'selfsubjectreviews', verbs: ['create'] }, { name: 'tokenreviews' }])
})

test('a user reads who it is, and what it may do', async (t) => {
  const { ask } = await anApi(t)
  const apiVersion = 'authentication.k8s.io/v1'
  const me = await ask('POST', `${authentication}/selfsubjectreviews`, {
    body: { kind: 'SelfSubjectReview', apiVersion },
  })
  t.match(me, {
    code: 201,
    body: { status: { userInfo: { username: 'admin', groups: ['system:masters', 'system:authenticated'] } } },
  })
  const rules = { kind: 'SelfSubjectRulesReview', apiVersion: 'authorization.k8s.io/v1', spec: {} }
  t.match(await ask('POST', `${authorization}/selfsubjectrulesreviews`, { body: rules }), {
    code: 400,
    body: { message: 'no namespace on request' },
  })
  // As kubectl until 1.31 sends it.
  const status = { resourceRules: null, nonResourceRules: null, incomplete: false }
  for (const more of [{}, { status }, { status: {} }]) {
    t.match(
      await ask('POST', `${authorization}/selfsubjectrulesreviews`, {
        body: { ...rules, spec: { namespace: 'default' }, ...more },
      }),
      { code: 201, body: { status: { resourceRules: [], nonResourceRules: [], incomplete: false } } },
    )
  }
})

test('a token is reviewed', async (t) => {
  const { ask, store } = await anApi(t)
  await store.create(
    'secrets',
    encodeToken({ id: 'abcdef', secret: '0123456789abcdef', usages: ['authentication'], groups: [] }),
  )
  const review = (token: string, audiences?: readonly string[]) =>
    ask('POST', `${authentication}/tokenreviews`, {
      body: {
        kind: 'TokenReview',
        apiVersion: 'authentication.k8s.io/v1',
        spec: { token, ...(audiences && { audiences }) },
      },
    })
  t.match(await review('abcdef.0123456789abcdef'), {
    code: 201,
    body: { status: { authenticated: true, user: { username: 'system:bootstrap:abcdef' } } },
  })
  for (const audiences of [[], ['vault', tokenIssuer]]) {
    t.match(await review('abcdef.0123456789abcdef', audiences), {
      body: { status: { authenticated: true, audiences: [tokenIssuer] } },
    })
  }
  const elsewhere = await review('abcdef.0123456789abcdef', ['vault'])
  t.match(elsewhere.body, { status: { error: /is invalid for the target audiences \["vault"\]/ } })
  t.notMatch(elsewhere.body, { status: { authenticated: true } }, 'it is for this API only')
  const wrong = await review('abcdef.0123456789abcdee')
  t.match(wrong, { code: 201, body: { status: { error: /abcdef is not known/ } } })
  t.notMatch(wrong.body, { status: { authenticated: true } })
  t.match(await review(''), { code: 400, body: { message: 'token is required for TokenReview in authentication' } })
})
