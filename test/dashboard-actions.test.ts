import { rename, writeFile } from 'node:fs/promises'
import { get } from 'node:https'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { type Test, test } from 'tap'
import { openAuthority } from '../certs/authority.ts'
import { caHash } from '../certs/ca-hash.ts'
import { type Issued, issueServer } from '../certs/issue.ts'
import { hasChromium, openBrowser, type Page } from './support/browser.ts'
import { hasButton, noDialog, openLoggedIn, text, tile } from './support/dashboard-page.ts'
import { agentLauncher, temporaryFolder } from './support/fleet.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { podManifest } from './support/manifests.ts'
import { isRoot, skipWithout } from './support/missing-parts.ts'
import { image } from './support/pods.ts'
import { startProgram } from './support/program.ts'
import { eventually } from './support/wait.ts'

const skip = skipWithout('root', isRoot()) || skipWithout('chromium', hasChromium())
const publicName = 'fleet.example.org'

/** A certificate for the public name, of an authority that is not the fleet's; `issue` makes another. */
async function pageCertificate(folder: string) {
  const authority = await openAuthority(join(folder, 'public-authority'), Date.now())
  const files = { dashboardCertFile: join(folder, 'page.crt'), dashboardKeyFile: join(folder, 'page.key') }
  const replace = async (path: string, content: string) => {
    await writeFile(`${path}.new`, content)
    await rename(`${path}.new`, path)
  }
  return {
    settings: files,
    ca: authority.certificate,
    async issue(): Promise<Issued> {
      const issued = issueServer(authority, { names: [publicName], nowMs: Date.now() })
      await replace(files.dashboardCertFile, issued.certificate)
      await replace(files.dashboardKeyFile, issued.key)
      return issued
    },
  }
}

type Answer = { readonly code: number | undefined; readonly body: string; readonly keyHash: string }

/** Rejects when `ca` did not sign the server's certificate, or its names do not have that of the request. */
function getTrusting(ca: string, url: string, servername?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { ca, agent: false, ...(servername && { servername, headers: { host: servername } }) }
    const request = get(url, options, async (response) => {
      const certificate = (response.socket as TLSSocket).getPeerX509Certificate()
      let body = ''
      for await (const piece of response) body += piece
      resolve({ code: response.statusCode, body, keyHash: certificate === undefined ? '' : caHash(certificate) })
    })
    request.once('error', reject)
  })
}

const focused = (wanted: string) => `(() => {
  const one = document.activeElement
  const { outlineStyle, outlineWidth } = getComputedStyle(one)
  const isVisible = one.matches(':focus-visible') && outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1
  return { isWanted: (${wanted})(one), isVisible, isBody: one === document.body, html: one.outerHTML.slice(0, 100) }
})()`
type Focused = {
  readonly isWanted: boolean
  readonly isVisible: boolean
  readonly isBody: boolean
  readonly html: string
}

/** Tab until the element is focused that the function of the page finds; every element on the way shows that it is. */
async function tabTo(t: Test, page: Page, wanted: string): Promise<void> {
  for (let stops = 0; stops < 80; stops++) {
    await page.press('Tab')
    const { isWanted, isVisible, isBody, html } = await page.evaluate<Focused>(focused(wanted))
    if (!isBody && !isVisible) t.fail(`the focus is not visible: ${html}`)
    if (isWanted) return
  }
  throw new Error(`Tab does not lead to ${wanted}`)
}

const isTile = `(one) => one.matches('.tile')`
const isNamed = (name: string) => `(one) => one.matches('button') && one.textContent === ${JSON.stringify(name)}`
const inDialog = `document.querySelector('dialog')?.contains(document.activeElement) === true`

/** Reads nodes and requests of machines, and may write the approval of one; `ofSigner`: also use the signer, which it needs, too. */
function approver(ofSigner: boolean): string {
  const group = 'certificates.k8s.io'
  const rules = [
    { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [group], resources: ['certificatesigningrequests'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [group], resources: ['certificatesigningrequests/approval'], verbs: ['patch'] },
    ...(ofSigner ? [{ apiGroups: [group], resources: ['signers'], resourceNames: [signer], verbs: ['approve'] }] : []),
  ]
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const metadata = { name: 'approver' }
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'approver' }
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ada' }]
  const items = [
    { apiVersion, kind: 'ClusterRole', metadata, rules },
    { apiVersion, kind: 'ClusterRoleBinding', metadata, roleRef, subjects },
  ]
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
}
const signer = 'kubernetes.io/kube-apiserver-client-kubelet'

test('machines and pods are changed on the page, which has a certificate of its own', { skip }, async (t) => {
  const own = await pageCertificate(await temporaryFolder(t))
  const first = await own.issue()
  const fleet = await joinedFleet(t, { controller: { nodeConnectionLossDebounce: '1s', ...own.settings } })
  const { controller } = fleet
  const url = `${controller.apiUrl}/ui/`
  const ofFleet = await controller.kubectl(
    ...['config', 'view', '--raw', '-o', 'jsonpath={.clusters[0].cluster.certificate-authority-data}'],
  )
  const fleetCa = Buffer.from(ofFleet, 'base64').toString()
  const pageOfPublicName = () => getTrusting(own.ca, url, publicName)

  t.match(await pageOfPublicName(), { code: 200, body: 'Bramble', keyHash: caHash(first.certificate) })
  const second = await own.issue()
  await fleet.startReady()

  await t.test(
    'by any other name or address it has the certificate of the fleet, as kubectl and agents need',
    async (t) => {
      t.match(await getTrusting(fleetCa, url), { code: 200, body: 'Bramble' })
      t.equal((await getTrusting(fleetCa, url, 'localhost')).code, 200)
      await t.rejects(getTrusting(own.ca, url))
      await t.rejects(getTrusting(fleetCa, url, publicName))
      t.match(await controller.kubectl('get', 'nodes'), /pi-1 +Ready/)
    },
  )

  const page = await openBrowser(t, url)
  await page.size(1280, 860)

  await t.test('without a login the authority is downloaded, and its hash is the printed one', async (t) => {
    await page.goto(url)
    await page.click('summary', 'certificate')
    await page.until('the hash', `${text('.hash')} !== ''`)
    const download = await page.evaluate<string>(
      `fetch(document.querySelector('main a[download]').href).then((one) => one.text())`,
    )
    t.equal(download.trim(), fleetCa.trim())
    t.equal(await page.evaluate(text('.hash')), caHash(download))
    t.equal((await controller.joinLine()).at(-1), caHash(download), 'as the join command has it')
    const { code, body } = await getTrusting(download, `${controller.apiUrl}/ca.crt`)
    t.same({ code, body }, { code: 200, body: download }, 'a program without a cookie gets the same')
  })

  await t.test('a machine is cordoned with the keyboard alone', async (t) => {
    const cordoned = () => controller.kubectl('get', 'node', 'pi-1', '-o', 'jsonpath={.spec.unschedulable}')
    const hasFocus = async (name: string) => (await page.evaluate<Focused>(focused(isNamed(name)))).isWanted
    await openLoggedIn(page, controller)
    await page.until('the machine', tile('pi-1', 'good'))
    await tabTo(t, page, isTile)
    await page.press('Enter')
    await page.until('the page of the machine', `${text('h1')}.startsWith('pi-1') && ${hasButton('Cordon')}`)
    await tabTo(t, page, isNamed('Cordon'))
    await page.press('Enter')
    await page.until('the question has the focus', inDialog)
    await page.press('Escape')
    await page.until('the question is closed', noDialog)
    const isBack = `(({ isWanted, isVisible }) => isWanted && isVisible)(${focused(isNamed('Cordon'))})`
    await page.until('the focus is back', isBack)
    t.equal(await cordoned(), '')
    for (const [name, state] of [
      ['Cordon', 'true'],
      ['Uncordon', ''],
    ] as const) {
      await eventually(`${name} has the focus`, () => hasFocus(name))
      await page.press('Enter')
      await page.until('the question has the focus', inDialog)
      await tabTo(t, page, `(one) => one.closest('dialog') !== null && (${isNamed(name)})(one)`)
      await page.press('Enter')
      await page.until('the question is closed', noDialog)
      t.equal(await cordoned(), state)
    }
    await page.press('/')
    t.equal(await page.evaluate(`document.activeElement.className`), 'search')
  })

  await t.test('a pod is deleted from its page after a question', async (t) => {
    await controller.kubectlWith(
      podManifest({ name: 'web', image, spec: { terminationGracePeriodSeconds: 1 } }),
      'apply',
      '-f',
      '-',
    )
    await controller.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=80s')
    const uid = () => controller.kubectl('get', 'pod', 'web', '--ignore-not-found', '-o', 'jsonpath={.metadata.uid}')
    const before = await uid()
    await page.click('nav a', 'Pods')
    await page.click('.row.good', 'web')
    await page.click('main .lead button', 'Delete')
    t.match(await page.evaluate<string>(text('dialog')), 'Delete web?No controller creates it again.')
    await page.click('dialog button', 'Cancel')
    await page.until('the question is closed', noDialog)
    t.equal(await uid(), before)
    await page.click('main .lead button', 'Delete')
    await page.click('dialog button.danger', 'Delete')
    await page.until('no pod', `${text('main')}.includes('There is no pod web')`)
    t.equal(await uid(), '')
    t.equal(await page.evaluate(noDialog), true)
  })

  await t.test('the maintenance of the machines is shown, and paused on the page', async (t) => {
    const shown = text('[aria-label="Maintenance of the machines"]')
    const maintenance = (...args: readonly string[]) =>
      controller.command('maintenance', ...args, '--kubeconfig', controller.kubeconfig)
    await page.click('nav a', 'Fleet')
    t.equal(await page.evaluate(shown), '', 'none was started')
    t.match(await maintenance('start'), { code: 0 })
    await page.until('it is shown', `${shown}.includes('No node waits for maintenance')`)
    await page.click('.notice button', 'Pause')
    t.match(await page.evaluate<string>(text('dialog')), 'No other machine begins')
    await page.click('dialog button', 'Pause')
    await page.until('it is paused', `${noDialog} && ${shown}.includes('Paused on the dashboard')`)
    t.match(await maintenance('status'), { code: 0, stdout: /^Paused\. Paused on the dashboard\n/ })
    await page.click('.notice button', 'Resume')
    await page.click('dialog button', 'Resume')
    await page.until('it goes on', `${noDialog} && ${shown}.includes('Idle')`)
  })

  await t.test('a machine that waits for the name of a Node is approved by those who may', async (t) => {
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-2' } }
    await controller.kubectlWith(JSON.stringify(node), 'create', '-f', '-')
    await page.click('nav a', 'Fleet')
    await page.until('pi-2 has not joined', `${text('main')}.includes('pi-2')`)
    const named = ['--no-run', '--node-name', 'pi-2', '--data-dir', fleet.dataDir('pi-2')]
    const joining = startProgram([agentLauncher, ...(await controller.joinLine()), ...named], (end) => t.teardown(end))
    const isWaiting = `${text('.waiting')}.startsWith('pi-2 waits for approval')`
    await page.until('the request', isWaiting)
    await page.until('the administrator may approve it', hasButton('Approve'))

    await controller.kubectlWith(approver(false), 'apply', '-f', '-')
    const earlier = page.requests.length
    await openLoggedIn(page, controller, '--user', 'ada')
    await page.until('the request', isWaiting)
    await eventually('the page has asked for the rights of the user, and has its answers', async () => {
      const asked = page.requests.slice(earlier).filter((one) => one.endsWith('/selfsubjectaccessreviews')).length
      const answered = `performance.getEntriesByType('resource').filter(({ name, responseEnd }) => name.endsWith('/selfsubjectaccessreviews') && responseEnd > 0).length`
      return asked >= 4 && (await page.evaluate(answered)) === asked
    })
    t.equal(await page.evaluate(`document.querySelectorAll('main button').length`), 0, 'without the right: no button')

    await controller.kubectlWith(approver(true), 'apply', '-f', '-')
    await openLoggedIn(page, controller, '--user', 'ada')
    await page.click('.waiting button', 'Approve')
    t.match(await page.evaluate<string>(text('dialog')), 'gets a certificate for the name pi-2')
    await page.click('dialog button.primary', 'Approve')
    await page.until('nothing waits', `${noDialog} && document.querySelector('.waiting') === null`)
    t.equal(await joining.ended, 0, 'the machine has its certificate')
    await fleet.startAgent('pi-2')
    await page.until('the machine is there', tile('pi-2', 'good'))
  })

  await t.test('a renewed certificate of the page is used without a restart', async (t) => {
    const isRenewed = async () => (await pageOfPublicName()).keyHash === caHash(second.certificate)
    await eventually('the renewed certificate', isRenewed, { withinMs: 180_000, everyMs: 500 })
    t.equal((await getTrusting(fleetCa, url)).code, 200)
  })
})
