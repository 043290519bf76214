/** `card --offer`. Needs xz. */
import { execFileSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { offeredCards } from '../../cards/offered/offered-cards.ts'
import { madeCard, madeFat, putFiles } from '../../testing/made-card.ts'
import { cardCommand } from './card-command.ts'

test('an image is offered without a controller or a token, and replaced only if that is asked for', async (t) => {
  const folder = testFolder(t)
  const issue = 'Raspberry Pi reference 2025-12-04\nGenerated using pi-gen\n'
  const system = { 'cmdline.txt': 'root=x', 'config.txt': 'auto_initramfs=1', 'issue.txt': issue, 'kernel8.img': 'k' }
  await writeFile(join(folder, 'raspios.img'), madeCard(await putFiles(madeFat(), system)))
  execFileSync('xz', [join(folder, 'raspios.img')])
  await mkdir(join(folder, 'packages'))
  await writeFile(join(folder, 'packages/bramble-archive-keyring_1_all.deb'), '!<arch>\n')
  const type = async (...more: readonly string[]) => {
    let [stdout, stderr] = ['', '']
    const code = await cardCommand(
      [
        join(folder, 'raspios.img.xz'),
        '--packages',
        join(folder, 'packages'),
        '--offer',
        '--data-dir',
        folder,
        ...more,
      ],
      {
        stdout: (text) => {
          stdout += text
        },
        stderr: (text) => {
          stderr += text
        },
        signal: new AbortController().signal,
        nowMs: Date.now(),
        randomBytes() {
          throw new Error('A token was made')
        },
      },
    )
    return { code, stdout, stderr }
  }
  const first = await type()
  t.equal(first.code, 0, first.stderr)
  t.match(first.stdout, `${folder}/cards/raspios.card: Raspberry Pi reference 2025-12-04, 1 MB to download\n`)
  t.match(await offeredCards(join(folder, 'cards'), quietLog(t)).list(), [{ name: 'raspios', initFormat: 'systemd' }])
  t.match(await type(), { code: 1, stderr: /raspios\.card exists/ })
  t.match(await type('--replace'), { code: 0 })
})
