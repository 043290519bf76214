import { test } from 'tap'
import type { Identity } from '../../../api/identity.ts'
import type { Attributes, Authorizer } from '../handlers/authorizer.ts'
import { impersonated } from './impersonation.ts'

const eve: Identity = { user: 'eve', groups: ['system:authenticated'] }

/** Allows what is in the list, and keeps what was asked. */
const allowing = (...allowed: readonly string[]) => {
  const asked: string[] = []
  const textOf = (attributes: Attributes) => {
    if (attributes.kind === 'path') return attributes.path
    const { verb, group, resource, subresource, namespace, name } = attributes
    return `${verb} ${group}/${resource}/${subresource} ${namespace}/${name}`
  }
  const access: Authorizer = {
    async decide(identity, attributes) {
      asked.push(`${identity.user}: ${textOf(attributes)}`)
      return { allowed: allowed.includes('*') || allowed.includes(textOf(attributes)), reason: '' }
    },
    rulesOf: () => [],
    rulesOfRole: () => undefined,
    revision: () => 0,
  }
  return { access, asked }
}
const all = allowing('*').access

test('without headers of impersonation a request is made as its user', async (t) => {
  t.equal(await impersonated(eve, { accept: 'x' }, allowing().access), eve)
})

test('each part of the other identity must be allowed', async (t) => {
  const { access, asked } = allowing('*')
  const headers = {
    'impersonate-user': 'adam',
    'impersonate-group': ['a', 'b,c'],
    'impersonate-uid': '7',
    'impersonate-extra-example.com%2fscope': ['x', 'y'],
  }
  t.same(await impersonated(eve, headers, access), {
    user: 'adam',
    groups: ['a', 'b,c', 'system:authenticated'],
    uid: '7',
    extra: { 'example.com/scope': ['x', 'y'] },
  })
  t.same(asked, [
    'eve: impersonate /users/ /adam',
    'eve: impersonate /groups/ /a',
    'eve: impersonate /groups/ /b,c',
    'eve: impersonate authentication.k8s.io/userextras/example.com/scope /x',
    'eve: impersonate authentication.k8s.io/userextras/example.com/scope /y',
    'eve: impersonate authentication.k8s.io/uids/ /7',
  ])
  const some = allowing('impersonate /users/ /adam').access
  await t.rejects(impersonated(eve, headers, some), { code: 403, message: 'groups "a" is forbidden' })
})

test('a service account is asked for as one, and has its groups', async (t) => {
  const { access, asked } = allowing('impersonate /serviceaccounts/ shop/ci')
  const as = await impersonated(eve, { 'impersonate-user': 'system:serviceaccount:shop:ci' }, access)
  t.same(as.groups, ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'])
  t.same(asked, ['eve: impersonate /serviceaccounts/ shop/ci'])
  // A name that only looks like one is the name of a user.
  for (const user of ['system:serviceaccount:shop', 'system:serviceaccount:Shop:ci', 'system:serviceaccount:a:b:c']) {
    await t.rejects(impersonated(eve, { 'impersonate-user': user }, access), { code: 403 }, user)
  }
})

test('the anonymous user is not authenticated', async (t) => {
  t.same((await impersonated(eve, { 'impersonate-user': 'system:anonymous' }, all)).groups, ['system:unauthenticated'])
})

test('names are UTF-8', async (t) => {
  const sent = Buffer.from('jürgen').toString('latin1')
  t.equal((await impersonated(eve, { 'impersonate-user': sent }, all)).user, 'jürgen')
})

test('headers that cannot be followed are refused, not ignored', async (t) => {
  const groups = Array.from({ length: 300 }, (_, index) => `g${index}`)
  for (const headers of [
    { 'impersonate-group': 'system:masters' },
    { 'impersonate-user': '' },
    { 'impersonate-uid': '1' },
    { 'impersonate-extra-a': 'b' },
    { 'impersonate-user': ['a', 'b'] },
    { 'impersonate-user': 'a', 'impersonate-groups': 'system:masters' },
    { 'impersonate-user': 'a', 'impersonate-group': [''] },
    { 'impersonate-user': 'a', 'impersonate-group': groups },
  ]) {
    await t.rejects(
      impersonated(eve, headers, all),
      { code: 400, message: /^Cannot impersonate: / },
      JSON.stringify(headers).slice(0, 80),
    )
  }
  const named = await impersonated(eve, { 'impersonate-user': '__proto__', 'impersonate-extra-__proto__': 'x' }, all)
  t.same(Object.entries(named.extra ?? {}), [['__proto__', ['x']]])
})
