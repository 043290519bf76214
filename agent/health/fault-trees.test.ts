/** A saved machine for each fault that has no sensor of its own: the condition is set, and cleared once it is repaired. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { bootFile } from '../adapters/disk/boot-file.ts'
import { filesystemAccess } from '../adapters/disk/filesystem-access.ts'
import { infoOf } from '../adapters/docker/answers.ts'
import { kernelLog } from '../adapters/kernel/kernel-log.ts'
import { machineSensors } from '../adapters/kernel/machine-sensors.ts'
import { savedTree } from '../testing/saved-trees.ts'
import { openBootRecord } from './boot-record.ts'
import { clockSynchronized } from './clock.ts'
import { dockerHealth } from './docker.ts'
import { readOnlyFilesystem } from './filesystem.ts'
import { filesystemWatch } from './filesystem-watch.ts'
import { kernelDeadlock, kernelTroubles } from './kernel-trouble.ts'
import { frequentRestarts } from './restarts.ts'

function copyOf(t: Test, tree: string): string {
  const root = testFolder(t)
  cpSync(savedTree(tree), root, { recursive: true, verbatimSymlinks: true })
  return root
}

/** Replaces `wrong` in the file by `right`. */
function replaceIn(path: string, wrong: string | RegExp, right: string): void {
  writeFileSync(path, readFileSync(path, 'utf8').replace(wrong, right))
}

test('a card that became read-only', async (t) => {
  const root = copyOf(t, 'pi-4-read-only-card')
  const kernel = { subscribe: () => undefined }
  const look = async () => {
    const filesystems = filesystemWatch({ access: filesystemAccess(root, root), kernel, clock: fakeClock() })
    return readOnlyFilesystem(await filesystems())
  }
  t.match(await look(), {
    status: 'True',
    reason: 'FilesystemReadOnly',
    message: /mmcblk0p2\) is read-only after 7 err/,
  })
  replaceIn(join(root, 'proc/self/mountinfo'), /\bro,/g, 'rw,')
  t.match(await look(), { status: 'False', reason: 'FilesystemsWritable' })
})

test('a disk that does not answer its kernel', async (t) => {
  const root = copyOf(t, 'pi-3-stuck-disk')
  const deadlock = async (uptimeMs: number) => {
    const clock = fakeClock()
    const kernel = kernelLog({ root, clock, log: quietLog(t), uptimeMs: () => uptimeMs })
    const read = kernelTroubles({ kernel, isStuck: machineSensors({ root }).isStuck, clock })
    const stopping = new AbortController()
    const done = kernel.run(stopping.signal)
    await clock.advance(1)
    const finding = kernelDeadlock(read())
    stopping.abort()
    await done
    return finding
  }
  t.match(await deadlock(1_030_000), { status: 'True', reason: 'TaskHung', message: /^jbd2\/sda1-8 \(process 231\)/ })
  t.match(await deadlock(9_000_000), { status: 'True' }, 'it waits on long after')
  replaceIn(join(root, 'proc/231/stat'), ') D ', ') S ')
  t.match(await deadlock(9_000_000), { status: 'False', reason: 'KernelHasNoDeadlock' })
})

test('a board whose clock no time server has set', async (t) => {
  const root = copyOf(t, 'pi-zero-2-without-time')
  const look = () => clockSynchronized({ ...machineSensors({ root }).time(), controller: undefined })
  t.match(look(), { status: 'True', reason: 'ClockNotSynchronized' })
  writeFileSync(join(root, 'run/systemd/timesync/synchronized'), '')
  t.match(look(), { status: 'False', reason: 'ClockSynchronized' })
})

test('a board that is started again and again', async (t) => {
  const root = copyOf(t, 'pi-4-boots-again-and-again')
  const bootID = readFileSync(join(root, 'proc/sys/kernel/random/boot_id'), 'utf8').trim()
  const look = async () => {
    const { shortBoots } = await openBootRecord(bootFile(join(root, 'var/lib/bramble/agent')), bootID)
    return frequentRestarts({ agentStartsAgoMs: undefined, dockerStartsAgoMs: [], shortBoots })
  }
  t.match(await look(), { status: 'True', reason: 'FrequentReboots' })
  replaceIn(join(root, 'var/lib/bramble/agent/boot-id'), '1c0a7b1d-31b5-4b3e-a5ff-7a1b0f4d9e77\n', '')
  t.match(await look(), { status: 'False', reason: 'NoFrequentRestarts' })
})

test('a Docker as an old release has it', async (t) => {
  const path = join(copyOf(t, 'pi-os-10-old-docker'), 'info.json')
  const look = () => {
    const { version } = infoOf(JSON.parse(readFileSync(path, 'utf8')))
    return dockerHealth({ version, silence: undefined })
  }
  t.match(look(), { status: 'True', reason: 'DockerTooOld', message: /^Docker 18\.09 is too old/ })
  replaceIn(path, '18.09.1', '20.10.24')
  t.match(look(), { status: 'False', reason: 'DockerAnswers' })
})
