/** Errors of a disk or file system that lost what it had, apart from those of this process: too few descriptors, or rights. */
import { isObject } from '../../../../api/text/json.ts'

/** ext4 reports EBADMSG and EUCLEAN for checksums and structures that do not fit (fs/ext4/ext4.h, EFSBADCRC and EFSCORRUPTED). */
const names: ReadonlyMap<unknown, string> = new Map([
  [-5, 'EIO'],
  [-74, 'EBADMSG'],
  [-117, 'EUCLEAN'],
])

/** Its name, which Node.js does not have for each of them; undefined: another error. */
export function diskErrorOf(error: unknown): string | undefined {
  return isObject(error) ? names.get(error['errno']) : undefined
}
