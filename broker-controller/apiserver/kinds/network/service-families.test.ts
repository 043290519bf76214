import { type Test, test } from 'tap'
import type { Service, ServiceSpec } from '../../../../api/network/service.ts'
import { anApi, patchTypes } from '../../../testing/api-in-memory.ts'
import { serviceNetwork } from '../../handlers/service-network.ts'

const path = '/api/v1/namespaces/default/services'
const serviceCIDR = '10.96.0.0/12'
const ipv6 = { serviceCIDR: 'fd00:10:96::/112' }

/** An API of a fleet whose Services may have addresses of both families, or of IPv4 only. */
async function openApi(t: Test, network = serviceNetwork(serviceCIDR, ipv6)) {
  const { ask, needs, store } = await anApi(t, { services: network })
  const specOf = (body: unknown) => (body as Service).spec ?? {}
  return {
    ask,
    needs,
    store,
    async create(name: string, spec: Partial<ServiceSpec>) {
      const service = { selector: { app: 'web' }, ports: [{ port: 80 }], ...spec }
      const metadata = { name, namespace: 'default' }
      return await ask('POST', path, { body: { apiVersion: 'v1', kind: 'Service', metadata, spec: service } })
    },
    async patch(name: string, spec: unknown) {
      return await ask('PATCH', `${path}/${name}`, { type: patchTypes.merge, body: { spec } })
    },
    async spec(name: string) {
      return specOf((await ask('GET', `${path}/${name}`)).body)
    },
  }
}

const [v4, v6] = [/^10\.\d+\.\d+\.\d+$/, /^fd00:10:96::[0-9a-f]{1,4}$/]

test('a Service has the families that it asks for, as in a dual-stack cluster of Kubernetes', async (t) => {
  const { create } = await openApi(t)
  const cases: readonly (readonly [name: string, given: Partial<ServiceSpec>, families: string, policy: string])[] = [
    ['plain', {}, 'IPv4', 'SingleStack'],
    ['prefers', { ipFamilyPolicy: 'PreferDualStack' }, 'IPv4,IPv6', 'PreferDualStack'],
    ['requires', { ipFamilyPolicy: 'RequireDualStack' }, 'IPv4,IPv6', 'RequireDualStack'],
    ['six', { ipFamilies: ['IPv6'] }, 'IPv6', 'SingleStack'],
    [
      'six-first',
      { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6', 'IPv4'] },
      'IPv6,IPv4',
      'RequireDualStack',
    ],
    ['six-then', { ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv6'] }, 'IPv6,IPv4', 'PreferDualStack'],
    ['named', { clusterIP: 'fd00:10:96::77' }, 'IPv6', 'SingleStack'],
    ['port', { type: 'NodePort', ipFamilyPolicy: 'PreferDualStack' }, 'IPv4,IPv6', 'PreferDualStack'],
  ]
  for (const [name, given, families, ipFamilyPolicy] of cases) {
    const { code, body } = await create(name, given)
    t.equal(code, 201, name)
    const clusterIPs = families.split(',').map((family) => (family === 'IPv4' ? v4 : v6))
    const [clusterIP] = clusterIPs
    t.match(body, { spec: { ipFamilies: families.split(','), ipFamilyPolicy, clusterIPs, clusterIP } }, name)
    t.equal((body as Service).spec?.clusterIPs?.length, clusterIPs.length, name)
  }
})

test('a headless Service has the families of its policy, and both without a selector', async (t) => {
  const { create } = await openApi(t)
  const families = async (name: string, given: Partial<ServiceSpec>) => {
    const { body } = await create(name, { clusterIP: 'None', ...given })
    const { ipFamilies, ipFamilyPolicy, clusterIPs } = (body as Service).spec ?? {}
    t.same(clusterIPs, ['None'], name)
    return `${ipFamilyPolicy} ${ipFamilies}`
  }
  t.equal(await families('plain', {}), 'SingleStack IPv4')
  t.equal(await families('prefers', { ipFamilyPolicy: 'PreferDualStack' }), 'PreferDualStack IPv4,IPv6')
  t.equal(await families('requires', { ipFamilyPolicy: 'RequireDualStack' }), 'RequireDualStack IPv4,IPv6')
  t.equal(await families('six', { ipFamilies: ['IPv6'] }), 'SingleStack IPv6')
  t.equal(await families('bare', { selector: {} }), 'RequireDualStack IPv4,IPv6')
  t.equal(await families('bare-six', { selector: {}, ipFamilies: ['IPv6'] }), 'RequireDualStack IPv6,IPv4')
})

test('a Service gets its second address when its policy is changed, and loses it again as SingleStack', async (t) => {
  const { create, patch, spec } = await openApi(t)
  for (const ipFamilyPolicy of ['PreferDualStack', 'RequireDualStack']) {
    const name = ipFamilyPolicy.toLowerCase()
    await create(name, {})
    const { clusterIP = '' } = await spec(name)
    t.match(await patch(name, { ipFamilyPolicy }), {
      code: 200,
      body: { spec: { clusterIP, clusterIPs: [clusterIP, v6], ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy } },
    })
    const second = (await spec(name)).clusterIPs?.[1]
    await patch(name, { ports: [{ port: 8080 }] })
    t.same((await spec(name)).clusterIPs, [clusterIP, second], 'another change leaves both')
    t.equal((await patch(name, { ipFamilyPolicy: 'SingleStack' })).code, 200)
    const { clusterIPs, ipFamilies } = await spec(name)
    t.same({ clusterIPs, ipFamilies }, { clusterIPs: [clusterIP], ipFamilies: ['IPv4'] })
    t.equal((await create(`${name}-next`, { clusterIP: second ?? '' })).code, 201, 'the address is free')
  }
})

test('a whole update without addresses and families keeps what is allocated, and the policy adds or removes the second', async (t) => {
  const { ask, create, spec } = await openApi(t)
  await create('web', { ipFamilyPolicy: 'PreferDualStack' })
  const { clusterIPs = [] } = await spec('web')
  const put = async (more: Partial<ServiceSpec>) => {
    const metadata = { name: 'web', namespace: 'default' }
    const given = { selector: { app: 'web' }, ports: [{ port: 80 }], ...more }
    return await ask('PUT', `${path}/web`, { body: { apiVersion: 'v1', kind: 'Service', metadata, spec: given } })
  }
  t.match(await put({}), { code: 200, body: { spec: { clusterIPs, ipFamilies: ['IPv4', 'IPv6'] } } })
  t.equal((await spec('web')).ipFamilyPolicy, 'PreferDualStack')
  await put({ ipFamilyPolicy: 'SingleStack' })
  t.same((await spec('web')).clusterIPs, clusterIPs.slice(0, 1))
  t.match(await put({ ipFamilyPolicy: 'RequireDualStack' }), {
    body: { spec: { clusterIPs: [clusterIPs[0], v6], ipFamilies: ['IPv4', 'IPv6'] } },
  })
})

test('what a Service may not change or ask for is refused in the words of Kubernetes', async (t) => {
  const { create, patch, spec } = await openApi(t)
  await create('web', { ipFamilyPolicy: 'RequireDualStack', clusterIP: '10.96.7.7' })
  await create('single', {})
  const [, second = ''] = (await spec('web')).clusterIPs ?? []
  const refused = async (name: string, change: Partial<ServiceSpec>, message: string) =>
    t.match(await patch(name, change), { code: 422, body: { message: `Service "${name}" is invalid: ${message}` } })
  await refused(
    'web',
    { clusterIPs: ['10.96.7.7'] },
    'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be set to \'SingleStack\' when releasing the secondary clusterIP',
  )
  await refused(
    'web',
    { ipFamilies: ['IPv4'] },
    'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be set to \'SingleStack\' when releasing the secondary ipFamily',
  )
  await refused(
    'web',
    { clusterIPs: ['10.96.7.7', 'fd00:10:96::9'] },
    'spec.clusterIPs[1]: Invalid value: ["10.96.7.7","fd00:10:96::9"]: may not change once set',
  )
  t.match(await patch('single', { ipFamilies: ['IPv6'] }), {
    code: 422,
    body: { message: /spec.ipFamilies\[0\]: Invalid value: \["IPv6"\]: may not change once set/ },
  })
  await refused(
    'single',
    { ipFamilies: ['IPv4', 'IPv6'] },
    "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
  )
  const six = async (clusterIP: string, message: string) =>
    t.match(await create('six', { clusterIP }), {
      code: 422,
      body: { message: `Service "six" is invalid: spec.clusterIPs: Invalid value: ["${clusterIP}"]: ${message}` },
    })
  const ranges = 'is not in the valid range. The range of valid IPs is fd00:10:96::/112'
  await six(second, `failed to allocate IP ${second}: provided IP is already allocated`)
  const long = second.toUpperCase().replace('::', ':0:0:0:0:')
  await six(long, `failed to allocate IP ${long}: provided IP is already allocated`)
  await six('fd00:10:97::1', `failed to allocate IP fd00:10:97::1: the provided IP (fd00:10:97::1) ${ranges}`)
  await six('fd00:10:96::', `failed to allocate IP fd00:10:96::: the provided IP (fd00:10:96::) ${ranges}`)
  t.equal((await create('last', { clusterIP: 'fd00:10:96::ffff' })).code, 201, 'IPv6 has no address of broadcasts')
  t.equal((await create('upper', { clusterIP: 'FD00:10:96::77' })).code, 201, 'an address is stored as it is written')
  await six('fd00:10:96::77', 'failed to allocate IP fd00:10:96::77: provided IP is already allocated')
})

test('Services created at once get different addresses in both families, until a range is full', async (t) => {
  const { create } = await openApi(t, serviceNetwork(serviceCIDR, { serviceCIDR: 'fd00:10:96::/124' }))
  const both = { ipFamilyPolicy: 'RequireDualStack' }
  const made = await Promise.all(Array.from({ length: 16 }, (_, index) => create(`web-${index}`, both)))
  const addresses = made.flatMap(({ body }) => (body as Service).spec?.clusterIPs ?? [])
  t.equal(new Set(addresses).size, 30, 'the first address of the range is not used')
  t.match(
    made.find(({ code }) => code !== 201),
    { code: 422, body: { message: /spec.clusterIPs: Invalid value: .*failed to allocate IP: range is full/ } },
  )
})

test('a Service that prefers both families stays as it is when the fleet gets or loses IPv6', async (t) => {
  const { ask, needs, store } = await openApi(t, serviceNetwork(serviceCIDR))
  const web = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'default' },
    spec: { selector: { app: 'web' }, ports: [{ port: 80 }], ipFamilyPolicy: 'PreferDualStack' },
  }
  t.match(await ask('POST', path, { body: web }), { code: 201, body: { spec: { ipFamilies: ['IPv4'] } } })
  Object.assign(needs, { services: serviceNetwork(serviceCIDR, ipv6) })
  const patch = async (spec: unknown) => await ask('PATCH', `${path}/web`, { type: patchTypes.merge, body: { spec } })
  t.match(await patch({ selector: { app: 'other' } }), { code: 200, body: { spec: { ipFamilies: ['IPv4'] } } })
  t.match(await patch({ ipFamilies: ['IPv4', 'IPv6'] }), { code: 200, body: { spec: { clusterIPs: [v4, v6] } } })
  const { clusterIPs = [] } = (await store.get('services', { namespace: 'default', name: 'web' }))?.spec ?? {}
  Object.assign(needs, { services: serviceNetwork(serviceCIDR) })
  t.match(await patch({ selector: { app: 'web' } }), { code: 200, body: { spec: { clusterIPs } } })
  await patch({ ipFamilyPolicy: 'SingleStack' })
  t.same((await store.get('services', { namespace: 'default', name: 'web' }))?.spec?.clusterIPs, clusterIPs.slice(0, 1))
})

test('a Service that requires IPv6 is changed without it only to SingleStack with IPv4 first', async (t) => {
  const { create, patch, needs, spec } = await openApi(t)
  await create('web', { ipFamilyPolicy: 'RequireDualStack' })
  await create('six', { ipFamilies: ['IPv6'] })
  const { clusterIP } = await spec('web')
  Object.assign(needs, { services: serviceNetwork(serviceCIDR) })
  const refused = { code: 422, body: { message: /not configured / } }
  t.match(await patch('web', { selector: { app: 'other' } }), refused)
  t.match(await patch('six', { selector: { app: 'other' } }), refused)
  t.equal((await patch('web', { ipFamilyPolicy: 'SingleStack' })).code, 200)
  t.match(await spec('web'), { clusterIPs: [clusterIP], ipFamilies: ['IPv4'] })
  t.equal((await patch('web', { selector: { app: 'other' } })).code, 200)
})
