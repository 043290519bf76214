import { execFileSync } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { get } from 'node:https'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { madeCard, madeFat, putFiles } from '../broker-controller/testing/made-card.ts'
import { hasChromium, openBrowser, type Page } from './support/browser.ts'
import { loginLink, text, tile } from './support/dashboard-page.ts'
import { temporaryFolder } from './support/fleet.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { isRoot, skipWithout } from './support/missing-parts.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const skip = skipWithout('root', isRoot()) || skipWithout('chromium', hasChromium())
/** A folder for pictures of the page; unset: none are made. */
const pictures = process.env['BRAMBLE_TEST_PICTURES']
const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

type Violation = { readonly id: string; readonly impact: string; readonly nodes: readonly { readonly html: string }[] }

/** What axe-core finds in the page that is serious. */
async function seriousProblems(page: Page): Promise<readonly string[]> {
  await page.evaluate(await readFile(axe, 'utf8'))
  const found = await page.evaluate<readonly Violation[]>('axe.run(document).then(({ violations }) => violations)')
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`)
}

async function picture(page: Page, name: string): Promise<void> {
  if (pictures !== undefined) await page.screenshot(join(pictures, `${name}.png`))
}

function deployment(name: string, replicas: number): string {
  const labels = { app: name }
  const command = ['sh', '-c', 'i=0; while true; do i=$((i+1)); echo "line $i of the log"; sleep 1; done']
  const spec = { terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image, command }] }
  return JSON.stringify({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  })
}

/** An image in the form of Raspberry Pi OS, and packages for it. */
async function cardImage(folder: string) {
  const system = {
    'cmdline.txt': 'root=x',
    'config.txt': 'auto_initramfs=1',
    'issue.txt': 'Raspberry Pi reference 2025-12-04\nGenerated using pi-gen\n',
    'kernel8.img': 'k',
  }
  const packages = join(folder, 'packages')
  await mkdir(packages)
  const image = join(folder, 'raspios.img')
  await writeFile(image, madeCard(await putFiles(madeFat(), system)))
  await writeFile(join(packages, 'bramble-archive-keyring_1_all.deb'), '!<arch>\n')
  return { image, packages }
}

/** Takes the link as Raspberry Pi Imager does: the list, and its image, in which the machine finds how to join. */
async function asImager(
  t: Test,
  link: string,
  { ca, server, token, caHash }: { readonly [name in 'ca' | 'server' | 'token' | 'caHash']: string },
): Promise<void> {
  const downloaded = (url: string) =>
    new Promise<Buffer>((resolve, reject) => {
      const request = get(url, { ca, agent: false }, async (response) => {
        const pieces: Buffer[] = []
        for await (const piece of response) pieces.push(piece as Buffer)
        resolve(Buffer.concat(pieces))
      })
      request.once('error', reject)
    })
  t.match(link, /^rpi-imager:\/\/open\?repo=https/)
  const list = await downloaded(new URL(link).searchParams.get('repo') ?? '')
  const [entry] = JSON.parse(String(list)).os_list
  t.equal(entry.name, `Raspberry Pi reference 2025-12-04 for ${new URL(server).host}`)
  const packed = await downloaded(entry.url)
  t.equal(packed.length, entry.image_download_size)
  const image = execFileSync('xz', ['--decompress', '--stdout'], { input: packed, maxBuffer: 1e8 })
  t.equal(image.length, entry.extract_size)
  t.match(image.toString('latin1'), `controller: ${server}\ntoken: ${token}\ncaHash: ${caHash}\n`)
}

test('the dashboard shows a fleet as it is, and changes it for those who may', { skip }, async (t) => {
  const fleet = await joinedFleet(t, {
    names: ['pi-1', 'pi-2', 'pi-3'],
    controller: { nodeConnectionLossDebounce: '1s' },
  })
  const { controller } = fleet
  const [, , third] = await fleet.startReady()
  const url = `${controller.apiUrl}/ui/`
  const page = await openBrowser(t, url)
  await page.size(1280, 860)

  await t.test('without a login nothing of the fleet is shown', async (t) => {
    await page.goto(url)
    await page.until('the login', `${text('main')}.includes('Log in with a link')`)
    t.notOk((await page.evaluate<string>(text('body'))).includes('pi-1'))
    t.equal(await page.evaluate('fetch("/api/v1/nodes").then(({ status }) => status)'), 403)
    t.equal(await page.evaluate('fetch("/ui/api/stream").then(({ status }) => status)'), 401)
    t.same(await seriousProblems(page), [])
    await picture(page, 'login')
  })

  await t.test('a link logs in once, and the machines appear', async (t) => {
    const three = `document.querySelectorAll('.tile.good').length === 3`
    await page.goto('about:blank')
    await page.goto(await loginLink(controller))
    await page.until('three machines', three)
    t.notMatch(await page.evaluate<string>('location.href'), 'login=', 'the link left the address')
    t.notOk((await page.evaluate<string>('document.cookie')).includes('bramble'), 'no script reads the cookie')
    await page.until('usage of a machine', `/CPU\\d+%/.test(${text('.tile')})`)
    t.same(await seriousProblems(page), [])
    await picture(page, 'fleet')
  })

  await t.test('a rollout, its pods, the live log and a shell', async (t) => {
    await controller.kubectlWith(deployment('web', 3), 'apply', '-f', '-')
    await controller.kubectl('rollout', 'status', 'deployment/web', '--timeout=120s')
    await page.click('nav a', 'Pods')
    await page.until('three pods', `document.querySelectorAll('.row.good').length >= 3`)
    t.same(await seriousProblems(page), [])
    await picture(page, 'pods')
    await page.click('.row.good', 'web')
    await page.click('button', 'Logs')
    await page.until('the log flows', `/line 5 of the log/.test(${text('[role=log]')})`)
    t.same(await seriousProblems(page), [])
    await picture(page, 'log')
    await page.click('button', 'Shell')
    await page.until('the shell is open', `${text('.log [role=status]')} === 'Connected'`)
    await page.until('the prompt', `document.querySelector('.shell')?.textContent.includes('#')`)
    await page.click('.shell')
    await page.type('echo $((6*7))-answer')
    await page.press('Enter')
    await page.until('the shell answers', `document.querySelector('.shell')?.textContent.includes('42-answer')`)
    await picture(page, 'shell')
  })

  await t.test('workloads are scaled and restarted', async (t) => {
    await page.click('nav a', 'Workloads')
    await page.click('.row button', 'Scale')
    await page.evaluate(
      `(() => { const input = document.querySelector('dialog input'); input.value = '2'; input.dispatchEvent(new Event('input', { bubbles: true })) })()`,
    )
    await page.click('dialog button.primary', 'Scale')
    await page.until('the dialog is closed', `document.querySelector('dialog') === null`)
    await page.until('two replicas', `${text('.row .cell-status')}.includes('2 of 2 ready')`, 120_000)
    await page.click('.row button', 'Restart')
    await page.click('dialog button.primary', 'Restart')
    const annotation = '{.spec.template.metadata.annotations.kubectl\\.kubernetes\\.io/restartedAt}'
    await page.until('the dialog is closed', `document.querySelector('dialog') === null`)
    t.match(await controller.kubectl('get', 'deployment', 'web', '-o', `jsonpath=${annotation}`), /^\d{4}-/)
    await controller.kubectl('rollout', 'status', 'deployment/web', '--timeout=120s')
    await picture(page, 'workloads')
  })

  await t.test('pools and claims are shown with their sizes', async (t) => {
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'photos' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '5Gi' } } },
    }
    await controller.kubectlWith(JSON.stringify(claim), 'apply', '-f', '-')
    await page.click('nav a', 'Storage')
    await page.until(
      'the pools of three machines',
      `document.querySelectorAll('ul[aria-label=Pools] .row').length === 3`,
    )
    await page.until('the claim', `/photos[^]*Pending[^]*5.0 GiB/.test(${text('ul[aria-label=Volumes]')})`)
    t.same(await seriousProblems(page), [])
    await picture(page, 'storage')
    await controller.kubectl('delete', 'pvc', 'photos')
  })

  await t.test('a drain shows its progress, and uncordon ends it', async (t) => {
    await page.click('nav a', 'Fleet')
    const [node = ''] = await eventually('the pods of before the restart have ended', async () => {
      const read = ['get', 'pods', '-l', 'app=web', '-o', 'jsonpath={.items[*].spec.nodeName}']
      const places = (await controller.kubectl(...read)).split(' ')
      return places.length === 2 && places
    })
    await page.click('.tile', node)
    await page.until('the page of the machine', `${text('h1')}.startsWith('${node}')`)
    await page.click('main button', 'Drain')
    await page.click('dialog button.danger', 'Drain')
    await page.until('the end of the drain', `${text('dialog [role=status]')}.startsWith('Done')`, 120_000)
    t.notMatch(await page.evaluate<string>(text('dialog [role=status]')), 'Done: 0 pods')
    t.same(await seriousProblems(page), [])
    await picture(page, 'drain')
    await page.click('dialog button', 'Close')
    t.equal(await controller.kubectl('get', 'node', node, '-o', 'jsonpath={.spec.unschedulable}'), 'true')
    await page.click('main button', 'Uncordon')
    await page.click('dialog button.primary', 'Uncordon')
    await page.until(
      'cordon again possible',
      `[...document.querySelectorAll('main button')].some((one) => one.textContent === 'Cordon')`,
    )
    await picture(page, 'node')
  })

  await t.test('a machine is rebooted only where its agent allows it', async (t) => {
    const name = (await page.evaluate<string>('location.hash')).split('/').at(-1) ?? ''
    const hasButton = `[...document.querySelectorAll('main button')].some((one) => one.textContent === 'Reboot')`
    t.equal(await page.evaluate(hasButton), false)
    // As if its agent had written it: the agent itself, which must not restart this computer, still refuses.
    await controller.kubectl('annotate', 'node', name, 'bramble.dev/remote-reboot=enabled', '--overwrite')
    await page.until('the button', hasButton)
    await page.click('main button', 'Reboot')
    t.same(await seriousProblems(page), [])
    await picture(page, 'reboot')
    await page.click('dialog button.danger', 'Reboot')
    await page.until('the dialog is closed', `document.querySelector('dialog') === null`)
    await page.until(
      'the request and its refusal',
      `/RebootRequested[^]*RebootRefused|RebootRefused[^]*RebootRequested/.test(${text('main')})`,
    )
    await controller.kubectl('annotate', 'node', name, 'bramble.dev/remote-reboot-')
    await page.until('no button', `!${hasButton}`)
  })

  await t.test('the doctor examines a machine when it is asked to', async (t) => {
    await page.click('.doctor button', 'Examine')
    await page.until('the findings', `${text('.doctor summary')}.includes('other check')`)
    await page.click('.doctor summary')
    t.match(await page.evaluate<string>(text('.doctor')), /kernel|docker/i)
    t.same(await seriousProblems(page), [])
    await picture(page, 'doctor')
  })

  await t.test('a token for another machine is shown once', async (t) => {
    const { image: source, packages } = await cardImage(await temporaryFolder(t))
    const offered = await controller.command(
      ...['card', source, '--packages', packages, '--offer', '--data-dir', controller.dataDir],
    )
    t.equal(offered.code, 0, offered.stderr)
    await page.goto('about:blank')
    await page.goto(url)
    await page.click('nav a', 'Fleet')
    await page.click('main button', 'Add a machine')
    await page.click('dialog button.primary')
    const command = await page.until<string>(
      'the command',
      `${text('dialog pre')}.includes('join') && ${text('dialog pre')}`,
    )
    const [, server, token, hash] = /join (\S+) --token (\S+) --ca-hash (\S+)/.exec(command) ?? []
    t.equal(server, controller.apiUrl)
    t.equal(hash, controller.caHash)
    t.match(
      (await controller.command('token', 'list', '--kubeconfig', controller.kubeconfig)).stdout,
      token ?? 'no token',
    )
    t.same(await seriousProblems(page), [])
    await picture(page, 'add')
    const link = await page.evaluate<string>(`document.querySelector('dialog a.imager').href`)
    const authority = ['config', 'view', '--raw', '-o', 'jsonpath={.clusters[0].cluster.certificate-authority-data}']
    const ca = Buffer.from(await controller.kubectl(...authority), 'base64').toString()
    await asImager(t, link, { ca, server: controller.apiUrl, token: token ?? '', caHash: controller.caHash })
    await page.press('Escape')
  })

  await t.test('a machine that is killed turns red within the detection time, and why is stated', async (t) => {
    third?.kill('SIGKILL')
    await page.until('pi-3 is red', tile('pi-3', 'bad'), 60_000)
    t.match(await page.evaluate<string>(text('.tile.bad .why')), /connection to the node was lost|stopped reporting/i)
    await page.until('the heading counts it', `${text('h1')}.includes('1 not ready')`)
    await page.until('the title counts it', `document.title.startsWith('(1)')`)
    t.same(await seriousProblems(page), [])
    await picture(page, 'fleet-lost')
    await page.click('nav a', 'Map')
    await page.until('the map', `document.querySelector('.cell.bad') !== null`)
    t.same(await seriousProblems(page), [])
    await picture(page, 'map')
    await page.click('nav a', 'Events')
    await page.until('events', `document.querySelectorAll('.event').length > 3`)
    t.same(await seriousProblems(page), [])
    await picture(page, 'events')
  })

  await t.test('it is usable on a phone, and in the dark', async (t) => {
    await page.size(390, 844, true)
    await page.click('nav a', 'Fleet')
    await page.until('the fleet', tile('pi-3', 'bad'))
    const isWide = 'document.documentElement.scrollWidth > innerWidth'
    t.equal(await page.evaluate(isWide), false, 'nothing is wider than the screen')
    t.same(await seriousProblems(page), [])
    await picture(page, 'phone-dark')
    await page.size(390, 844)
    await picture(page, 'phone')
    await page.size(1280, 860, true)
    await picture(page, 'fleet-dark')
  })

  await t.test('no other host is asked, no policy is broken, and the download is small', async (t) => {
    const own = new URL(url).host
    t.same(
      page.requests.filter((one) => /^(https?|wss?):/.test(one) && new URL(one).host !== own),
      [],
    )
    t.same(
      page.complaints.filter((one) => !/status of 40[13]/.test(one)),
      [],
    )
    const assets = await page.evaluate<number>(
      `performance.getEntriesByType('resource').filter(({ name }) => /\\.(js|css|svg)$/.test(name)).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`,
    )
    t.ok(assets > 20_000 && assets < 200_000, `${assets} bytes`)
  })

  await t.test('a revoked login is out at once', async (t) => {
    const list = await controller.command('dashboard', 'sessions', '--kubeconfig', controller.kubeconfig)
    const [, id = ''] = /^([0-9a-f]{12}) +kubernetes-admin/m.exec(list.stdout) ?? []
    t.match(
      (await controller.command('dashboard', 'revoke', id, '--kubeconfig', controller.kubeconfig)).stdout,
      'revoked',
    )
    await page.until('the login again', `${text('main')}.includes('Log in with a link')`, 10_000)
    t.equal(await page.evaluate('fetch("/api/v1/nodes").then(({ status }) => status)'), 401)
  })

  await t.test('a kiosk link shows the fleet, and offers no change', async (t) => {
    const made = await controller.command('dashboard', 'kiosk', 'create', '--kubeconfig', controller.kubeconfig)
    await page.goto('about:blank')
    await page.goto(made.stdout.trim())
    await page.until('the fleet', tile('pi-3', 'bad'))
    t.equal(await page.evaluate(`document.querySelectorAll('main button').length`), 0)
    const [, id = ''] = /kiosk=([0-9a-f]{12})/.exec(made.stdout) ?? []
    t.match(
      (await controller.command('dashboard', 'kiosk', 'revoke', id, '--kubeconfig', controller.kubeconfig)).stdout,
      'revoked',
    )
    await page.until('the login again', `${text('main')}.includes('Log in with a link')`, 20_000)
  })
})
