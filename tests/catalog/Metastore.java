import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;

/** A metastore that has the tables for locks, which its own start doesn't make. */
public class Metastore {
    public static void main(String[] arguments) throws Throwable {
        TxnDbUtil.prepDb(new HiveConf(Metastore.class));
        HiveMetaStore.main(arguments);
    }
}
