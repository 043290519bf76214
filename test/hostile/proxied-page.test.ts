/** A pod whose page is opened through the proxy of the API, in a real browser: it has the origin of the API and of the dashboard. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { type Test, test } from 'tap'
import { hasChromium, openBrowser } from '../support/browser.ts'
import { joinedFleet } from '../support/joined-fleet.ts'
import { podManifest } from '../support/manifests.ts'
import { skipWithout } from '../support/missing-parts.ts'
import { image } from '../support/pods.ts'
import { unnoticedBy } from './support/attacked-fleet.ts'

const skip = skipWithout('chromium', hasChromium())
const proxied = '/api/v1/namespaces/default/pods/evil:8080/proxy/'

/** Answers each request with a page, or with a script where one is asked for; always with these headers. */
const server = `
read -r request
while read -r line && [ "$line" != "$(printf '\\r')" ]; do :; done
type=text/html
case "$request" in *worker.js*) type=text/javascript ;; esac
printf 'HTTP/1.1 200 OK\\r\\nContent-Type: %s\\r\\nService-Worker-Allowed: /\\r\\n' "$type"
printf 'Set-Cookie: wide=1; Path=/\\r\\nSet-Cookie: __Host-bramble-session=forged; Path=/; Secure\\r\\nSet-Cookie: own=1\\r\\n'
printf 'Clear-Site-Data: "cookies", "storage"\\r\\nConnection: close\\r\\n\\r\\n'
[ "$type" = text/html ] && echo '<!doctype html><title>evil</title>'
exit 0
`

test('a page of a pod in a browser', { skip }, async (t) => {
  const fleet = await joinedFleet(t)
  await fleet.startReady()
  const { kubectlWith, kubectl, kubeconfig } = fleet.controller
  const start = `printf '#!/bin/sh\\n%s\\n' "$0" > /answer; chmod +x /answer; exec nc -ll -p 8080 -e /answer`
  const command = ['sh', '-c', start, server]
  const container = {
    ports: [{ containerPort: 8080 }],
    readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
  }
  await kubectlWith(podManifest({ name: 'evil', image, command, container }), 'apply', '-f', '-')
  await kubectl('wait', '--for=condition=Ready', 'pod/evil', '--timeout=80s')
  const url = await kubectlProxy(t, kubeconfig)
  const page = await openBrowser(t, url)
  await page.goto(`${url}/ui/`)
  await page.evaluate(`document.cookie = 'theirs=1; Path=/ui'`)
  const open = async () => {
    await page.goto(`${url}${proxied}`)
    await page.until('the page of the pod is loaded', "document.title === 'evil' && document.readyState === 'complete'")
  }
  await open()

  await unnoticedBy(t, kubeconfig, async () => {
    await t.test('registers no service worker beyond its path', async (t) => {
      const register = (scope: string) =>
        page.evaluate<string>(`navigator.serviceWorker.register('worker.js', { scope: '${scope}' })
          .then(({ scope }) => scope, ({ name }) => name)`)
      t.equal(await register('/'), 'SecurityError')
      t.equal(await register('/ui/'), 'SecurityError')
      t.equal(await register(proxied), `${url}${proxied}`, 'its own path is its own')
    })

    await t.test('has cookies of its own path only, and deletes none of others', async (t) => {
      t.match(await page.evaluate('document.cookie'), /own=1/)
      await page.goto(`${url}/ui/`)
      const cookies = await page.evaluate<string>('document.cookie')
      t.match(cookies, /theirs=1/)
      t.notMatch(cookies, /wide|own|forged/)
    })

    await t.test('shows the dashboard in no frame', async (t) => {
      await open()
      const framed = `new Promise((resolve) => {
        const frame = document.createElement('iframe')
        frame.onload = () => resolve(frame.contentDocument?.querySelector('script, main') ? 'shown' : 'refused')
        frame.src = '/ui/'
        document.body.append(frame)
      })`
      t.equal(await page.evaluate(framed), 'refused')
    })
  })
})

/** Resolves with its address. */
async function kubectlProxy(t: Test, kubeconfig: string): Promise<string> {
  const args = ['--kubeconfig', kubeconfig, 'proxy', '--port=0', '--reject-paths=^$']
  const proxy = spawn('kubectl', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => proxy.kill())
  for await (const line of createInterface({ input: proxy.stdout })) {
    const [, address] = /Starting to serve on (\S+)/.exec(line) ?? []
    if (address !== undefined) return `http://${address}`
  }
  throw new Error('kubectl proxy ended')
}
