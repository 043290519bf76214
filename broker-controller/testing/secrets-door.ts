/** A small working double of the API: Secrets of kube-system and kube-public/cluster-info, for an administrator alone. */
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { TLSSocket } from 'node:tls'
import type { Secret } from '../../api/secret.ts'
import { openAuthority } from '../../certs/authority.ts'
import { issueAdmin, issueServer } from '../../certs/issue.ts'
import { kubeconfigText } from '../../certs/kubeconfig.ts'

export async function openSecretsDoor(
  folder: string,
  { skewMs = 0, publicServer = 'https://fleet.example:6443' } = {},
) {
  const nowMs = Date.now()
  const authority = await openAuthority(folder, nowMs)
  const secrets = new Map<string, Secret>()
  const path = '/api/v1/namespaces/kube-system/secrets'
  const answerTo = (method: string, url: string, body: string): [status: number, body: unknown] => {
    const name = url.slice(path.length + 1)
    if (url.endsWith('/kube-public/configmaps/cluster-info')) {
      const kubeconfig = kubeconfigText({ server: publicServer, ca: authority.certificate })
      return [200, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'cluster-info' }, data: { kubeconfig } }]
    }
    if (!url.startsWith(path)) return [404, { kind: 'Status', message: 'no such path' }]
    if (method === 'GET') {
      const items = [...secrets.values()].map(({ kind, apiVersion, ...rest }) => rest)
      return [200, { kind: 'SecretList', apiVersion: 'v1', items }]
    }
    if (method === 'DELETE') return secrets.delete(name) ? [200, { kind: 'Status' }] : [404, { kind: 'Status' }]
    const secret: Secret = JSON.parse(body)
    secrets.set(secret.metadata.name ?? '', secret)
    return [201, secret]
  }

  const { certificate, key } = issueServer(authority, { names: ['127.0.0.1'], nowMs })
  const tls = { cert: certificate + authority.certificate, key, ca: authority.certificate }
  const server = createServer({ ...tls, requestCert: true, rejectUnauthorized: false }, (request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      const isAdmin = (request.socket as TLSSocket).getPeerCertificate().subject?.O === 'system:masters'
      const [status, answer] = isAdmin
        ? answerTo(request.method ?? '', request.url ?? '', body)
        : [401, { kind: 'Status', message: 'Unauthorized' }]
      response.writeHead(status, { date: new Date(Date.now() + skewMs).toUTCString() }).end(JSON.stringify(answer))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const url = `https://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  return {
    secrets,
    caHash: authority.hash,
    kubeconfig: kubeconfigText({ server: url, ca: authority.certificate, ...issueAdmin(authority, { nowMs }) }),
    strangerKubeconfig: kubeconfigText({ server: url, ca: authority.certificate }),
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
