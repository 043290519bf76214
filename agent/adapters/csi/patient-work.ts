/** Work of drivers that may take minutes: a worker of pods waits for it a little, and it goes on afterwards. The next caller gets its result. */
import { withinOr } from '../../../daemon/deadline.ts'
import { VolumeError } from '../../pods/volumes/volume-store.ts'

export interface PatientWork {
  /** Starts the work unless that of this key is under way. Throws VolumeError with `late` if it is not done soon. */
  run<T>(key: string, late: string, work: () => Promise<T>): Promise<T>
  /** The result of this key is of no use any more. */
  forget(key: string): void
}

const isLate = Symbol('late')

export function patientWork(patienceMs: number): PatientWork {
  const underWay = new Map<string, Promise<unknown>>()
  return {
    async run<T>(key: string, late: string, work: () => Promise<T>): Promise<T> {
      // Under one key there is work of one kind.
      const own = (underWay.get(key) as Promise<T> | undefined) ?? work()
      underWay.set(key, own)
      own.catch(() => undefined) // The caller that waits for it, or the next one, throws its error.
      const forget = () => {
        if (underWay.get(key) === own) underWay.delete(key)
      }
      const result = await withinOr(patienceMs, isLate, own).catch((error: unknown) => {
        forget()
        throw error
      })
      if (result === isLate) throw new VolumeError(late)
      forget()
      return result as T
    },
    forget: (key) => void underWay.delete(key),
  }
}
