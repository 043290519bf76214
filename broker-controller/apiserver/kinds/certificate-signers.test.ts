import { test } from 'tap'
import { newKey } from '../../../certs/authority.ts'
import { createClientCSR } from '../../../certs/client-csr.ts'
import { anApi, patchTypes } from '../../testing/api-in-memory.ts'

const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
const signerName = 'kubernetes.io/kube-apiserver-client'
const adam = { user: 'adam', groups: [] }
const request = (name: string, ...groups: readonly string[]) => ({
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  metadata: { name },
  spec: {
    request: Buffer.from(createClientCSR({ user: 'eve', groups }, newKey())).toString('base64'),
    signerName,
    usages: ['client auth'],
  },
})
const approved = { status: { conditions: [{ type: 'Approved', status: 'True', reason: 'x' }] } }

test('a user approves and signs requests of those signers only that a role names', async (t) => {
  const { ask } = await anApi(t)
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const may = async (name: string, rule: object) => {
    await ask('POST', `${rbac}/clusterroles`, { body: { metadata: { name }, rules: [rule] } })
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name }
    const subjects = [{ kind: 'User', name: 'adam' }]
    t.match(await ask('POST', `${rbac}/clusterrolebindings`, { body: { metadata: { name }, roleRef, subjects } }), {
      code: 201,
    })
  }
  const requests = ['certificatesigningrequests/approval', 'certificatesigningrequests/status']
  await may('writer', { apiGroups: ['certificates.k8s.io'], resources: requests, verbs: ['patch'] })
  t.match(await ask('POST', path, { body: request('eve') }), { code: 201 })
  const patch = (part: string, body: object) =>
    ask('PATCH', `${path}/eve/${part}`, { body, type: patchTypes.merge, as: adam })
  t.match(await patch('approval', approved), {
    code: 403,
    body: {
      message: `certificatesigningrequests.certificates.k8s.io "eve" is forbidden: user not permitted to approve requests with signerName "${signerName}"`,
    },
  })
  t.match(await patch('status', { status: { certificate: 'MQ==' } }), {
    code: 403,
    body: { message: /not permitted to sign/ },
  })
  await may('approver', {
    apiGroups: ['certificates.k8s.io'],
    resources: ['signers'],
    resourceNames: ['kubernetes.io/*'],
    verbs: ['approve'],
  })
  t.match(await patch('approval', approved), { code: 200 })
  t.match(await patch('status', { status: { certificate: 'MQ==' } }), { code: 403 })
})

test('no request of people names the group of administrators', async (t) => {
  const { ask } = await anApi(t)
  t.match(await ask('POST', path, { body: request('eve', 'ops', 'system:masters') }), {
    code: 403,
    body: {
      message: `certificatesigningrequests.certificates.k8s.io "eve" is forbidden: use of ${signerName} signer with system:masters group is not allowed`,
    },
  })
  t.match(await ask('POST', path, { body: request('eve', 'ops') }), { code: 201 })
})
