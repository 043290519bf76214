/** A conversion webhook with the real kubectl, on a real controller. */
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import {
  convertedAnswer,
  convertedDefinition,
  type ReviewRequest,
} from '../broker-controller/testing/conversion-webhook.ts'
import { openAuthority } from '../certs/authority.ts'
import { issueServer } from '../certs/issue.ts'
import { startController, temporaryFolder } from './support/fleet.ts'

test('kubectl works with each version of a kind that a webhook converts', async (t) => {
  const folder = await temporaryFolder(t)
  const nowMs = Date.now()
  const authority = await openAuthority(join(folder, 'authority'), nowMs)
  const { certificate: cert, key } = issueServer(authority, { names: ['127.0.0.1'], nowMs })
  const server = createServer({ cert, key }, (request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const review = JSON.parse(Buffer.concat(parts).toString()) as { readonly request: ReviewRequest }
      response.end(JSON.stringify({ ...review, response: convertedAnswer(review.request) }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/convert`
  const caBundle = Buffer.from(authority.certificate).toString('base64')
  const controller = await startController(t, { dataDir: join(folder, 'controller') })
  const { kubectl } = controller
  const file = async (name: string, content: object) => {
    const path = join(folder, name)
    await writeFile(path, JSON.stringify(content))
    return path
  }
  const define = async (storage: 'v1' | 'v2') => {
    await kubectl(
      'apply',
      '-f',
      await file('definition.json', convertedDefinition(storage, { clientConfig: { url, caBundle } })),
    )
    await kubectl('wait', '--for=condition=Established', 'crd/shops.example.com', '--timeout=30s')
  }
  const shop = (name: string, version: string, more: object) => ({
    apiVersion: `example.com/${version}`,
    kind: 'Shop',
    metadata: { name, namespace: 'default' },
    ...more,
  })
  await define('v1')
  await kubectl('apply', '-f', await file('a.json', shop('a', 'v1', { hostPort: 'alpha:80' })))
  t.match(await kubectl('get', 'shops.v2.example.com'), /NAME +HOST\na +alpha/)
  await define('v2')
  await kubectl('apply', '--server-side', '-f', await file('b.json', shop('b', 'v2', { host: 'beta', port: '81' })))
  const hosts = (kind: string, field: string) => kubectl('get', kind, '-o', `jsonpath={.items[*].${field}}`)
  t.equal(await hosts('shops.v2.example.com', 'host'), 'alpha beta')
  t.equal(await hosts('shops.v1.example.com', 'hostPort'), 'alpha:80 beta:81')
  await kubectl('patch', 'shops.v1.example.com', 'b', '--type=merge', '-p', '{"hostPort":"gamma:1"}')
  t.equal(await kubectl('get', 'shops.v2.example.com', 'b', '-o', 'jsonpath={.host} {.port}'), 'gamma 1')
  await kubectl('wait', '--for=jsonpath={.host}=gamma', 'shops.v2.example.com/b', '--timeout=10s')
  server.closeAllConnections()
  server.close()
  await kubectl('create', '-f', await file('c.json', shop('c', 'v2', { host: 'c', port: '1' })))
  t.match(await controller.tryKubectl('get', 'shops.v1.example.com', 'c'), {
    code: 1,
    stderr: /conversion webhook for example\.com\/v2, Kind=Shop failed: Post "https:.*connection refused/,
  })
  t.match(await kubectl('delete', 'crd', 'shops.example.com', '--timeout=60s'), /deleted/)
})
